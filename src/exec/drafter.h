// The drafts of a step: what its decoding rows verify beside the token that is certain.
// Source: spec algorithms sections 1 and 4.3. See docs/speculation.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/mask_gate.h"
#include "exec/step.h"
#include "model/v41/model.h"
#include "sampling/sampler.h"

namespace deepinfer::exec {

// A decoding row with drafts. Reused over steps.
struct DraftRow {
  // What is drafted for: `newest` follows what `state` has consumed.
  void Begin(size_t row, const model::v41::SequenceState& sequence, int32_t newest, int64_t most);
  std::span<uint32_t> Mask(size_t k) {
    return std::span(masks).subspan(k * mask_words, mask_words);
  }
  // Nothing must be drawn: the sequence has ended.
  bool skip() const { return states[0] == MaskGate::State::kSkip; }

  size_t index = 0;  // of the plan's row
  const model::v41::SequenceState* state = nullptr;
  int64_t start = 0;            // position of tokens[0]
  int64_t wanted = 0;           // drafts, at most
  bool closed = false;          // nothing can follow the last draft
  std::vector<int32_t> tokens;  // the newest token, then its drafts
  // What may be drawn after tokens[0..k]: every token, or those of mask k. kSkip: nothing.
  std::vector<MaskGate::State> states;
  std::vector<uint32_t> masks;  // [1 + wanted, mask_words]
  size_t mask_words = 0;
};

// Draws drafts as the verification will draw tokens: with the request's parameters, history and
// grammar, from the same random numbers. A draft stands where the module's logits lead to the
// model's own token.
class Drafter {
 public:
  // The model must outlive it.
  explicit Drafter(const model::v41::Model& model) : model_(model) {}

  // Adds drafts to rows that have begun: at most `wanted`, fewer where a draft ends the sequence or
  // the grammar leaves nothing. Waits for the gates of rows with a grammar. What fails of one row
  // is its output's status. `samplers`: one a worker of the context.
  void Draft(model::v41::ForwardContext& context, Step& step, std::span<DraftRow> rows,
             std::span<Sampler> samplers);

 private:
  void WaitForMask(const RowInput& input, DraftRow& row);
  // As one batch, or row by row where that fails.
  void RunRows(model::v41::ForwardContext& context, Step& step, std::span<DraftRow* const> rows,
               std::span<Sampler> samplers);
  // -1: the sequence has no further draft.
  int32_t Draw(Step& step, DraftRow& row, const model::v41::DraftDraw& draw, Sampler& sampler);

  const model::v41::Model& model_;
  std::vector<DraftRow*> drafting_;
  std::vector<model::v41::DraftInput> inputs_;
  model::v41::DraftOutput out_;
};

}  // namespace deepinfer::exec
