// A step on its way through the executor: the plan, what the rows need, what they gave.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "exec/grammar_lookahead.h"
#include "exec/mask_gate.h"
#include "exec/sequence_sampling.h"
#include "sampling/logprobs.h"
#include "sched/plan.h"

namespace deepinfer::exec {

struct RowInput {
  SequenceSampling* sequence = nullptr;
  // Null: no grammar. Else sampling waits for it.
  const MaskGate* gate = nullptr;
  // With a gate: the grammar beyond it, for drafts.
  GrammarLookahead* lookahead = nullptr;
};

struct RowOutput {
  // Drawn after the row: one where the plan says that it samples, and one for every draft that
  // stands; none where the sequence had ended before.
  std::vector<int32_t> tokens;
  std::vector<TokenLogprobs> logprobs;  // one a token, where the parameters ask for them
  int64_t drafts = 0;                   // that were verified
  // Of prompt tokens, in order, the first of them behind those of earlier rows.
  std::vector<TokenLogprobs> prompt_logprobs;
  Status status;  // an error ends this sequence, no other

  void Clear() {
    tokens.clear();
    logprobs.clear();
    drafts = 0;
    prompt_logprobs.clear();
    status = {};
  }
};

// Seconds.
struct StepTiming {
  double forward = 0;
  double draft = 0;   // the draft module and its draws
  double mask = 0;    // waiting for grammar masks
  double sample = 0;  // the rest
};

// Owned by who launches it; belongs to the executor's thread from the launch to the end.
struct Step {
  const sched::StepPlan* plan = nullptr;
  std::vector<RowInput> rows;  // one a row of the plan
  std::vector<RowOutput> outputs;
  StepTiming timing;
};

}  // namespace deepinfer::exec
