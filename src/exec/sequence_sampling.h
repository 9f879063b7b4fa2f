// What drawing a sequence's tokens needs beside the logits.
#pragma once

#include <cstdint>
#include <span>

#include "deepinfer/sampling_params.h"
#include "sampling/logit_processor.h"
#include "sampling/token_history.h"

namespace deepinfer::exec {

// Lives from a sequence's first step to the end of its last one, preemptions included. Belongs to
// the executor's thread while one of its rows is launched.
class SequenceSampling {
 public:
  // `params` have passed their checks; params.seq_seed is this choice's own seed.
  SequenceSampling(SamplingParams params, std::span<const int32_t> prompt, int32_t eos_token);

  const SamplingParams& params() const { return params_; }
  // A row to sample from, but for its logits and grammar mask.
  SampleRow Row(int64_t position) const;
  // `token` was drawn.
  void Append(int32_t token);
  // A draft follows in Row, until it is rolled back. Nothing is drawn for good in between.
  void AppendDraft(int32_t token) {
    if (keeps_history_) history_.Append(token);
  }
  void RollbackDrafts(int64_t count) {
    if (keeps_history_) history_.Rollback(count);
  }
  // Whether the token ends the sequence: the end token, or one of stop_token_ids.
  bool Ends(int32_t token) const;
  // Clears the bits of the tokens that end the sequence (SampleRow::grammar_mask).
  void ForbidEnds(std::span<uint32_t> mask) const;

  // The last token drawn was one that ends it, so rows that are launched already need not run.
  bool ended() const { return ended_; }
  // The first prompt position whose row has not yet given log-probabilities: a preempted sequence
  // computes its prompt again.
  int64_t prompt_rows_done = 0;

 private:
  SamplingParams params_;
  int32_t eos_token_;  // -1 with ignore_eos
  bool keeps_history_;
  TokenHistory history_;
  bool ended_ = false;
};

}  // namespace deepinfer::exec
