// Turns a plan into forward passes and draws: the part of the engine that owns the model's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "exec/drafter.h"
#include "exec/paged_memory.h"
#include "exec/prefill.h"
#include "exec/step.h"
#include "model/v41/model.h"
#include "sampling/sampler.h"

namespace deepinfer::exec {

struct ExecutorOptions {
  PrefillPolicy prefill;
  // Rows of one sequence whose logits are all written at once, for log-probabilities of the prompt.
  int64_t logits_rows = 64;
  LogprobsMode logprobs_mode = LogprobsMode::kRaw;
};

// A row's outcome depends on its sequence alone. Not thread-safe; steps run in the order in which
// they were planned, since a sequence's newest token stays here between them.
class Executor {
 public:
  // The model and the memory must outlive the executor.
  Executor(const model::v41::Model& model, PagedMemory& memory, const ExecutorOptions& options);

  // Fills step.outputs and step.timing. What fails of one row is its output's status; a failed
  // sequence's later rows do nothing.
  void Run(model::v41::ForwardContext& context, Step& step);

 private:
  // A row of the plan, or a part of it, in a forward.
  struct Work {
    size_t index = 0;  // of the row
    model::v41::SequenceChunk chunk;
    int64_t first_logits = 0;  // the row in the head's output
    bool samples = false;      // after its last token
    int64_t draft = -1;        // of drafts_: its tokens; -1: none
  };
  using Batch = std::vector<Work>;

  // Slot, block table and tokens of a row. Empty: nothing is to be computed.
  std::optional<model::v41::SequenceChunk> Prepare(Step& step, size_t index);
  void BeginDrafts(const sched::PlanRow& row, size_t index, const model::v41::SequenceChunk& chunk);
  // The tokens of rows with drafts; rows of the batch that need not, or cannot, go on are dropped.
  void Draft(model::v41::ForwardContext& context, Step& step);
  // Forward and draws. A batch that cannot run as a whole runs row by row.
  void RunBatch(model::v41::ForwardContext& context, Step& step, Batch& batch);
  // A row all of whose logits are wanted, in parts.
  void RunPromptRow(model::v41::ForwardContext& context, Step& step, const Work& row);
  Status Forward(model::v41::ForwardContext& context, Step& step, Batch& batch);
  void Sample(model::v41::ForwardContext& context, Step& step, const Batch& batch);
  // The token after the row, or after a row with drafts: those that stand and the one behind them.
  void SampleRows(Step& step, const Work& work, Sampler& sampler);
  // Row `k` of those whose logits were computed.
  Result<int32_t> Draw(Step& step, const Work& work, int64_t k, int64_t position,
                       std::span<const uint32_t> mask, Sampler& sampler);
  void PromptLogprobs(model::v41::ForwardContext& context, Step& step, const Work& work);
  bool TakesBestOf(const Step& step, const Work& work) const;
  std::span<const float> LogitsOf(int64_t row) const;

  const model::v41::Model& model_;
  PagedMemory& memory_;
  const ExecutorOptions options_;
  model::v41::HeadOutput head_;
  std::vector<Sampler> samplers_;    // one a worker
  std::vector<RowScratch> scratch_;  // the same
  Drafter drafter_;
  std::vector<DraftRow> drafts_;  // draft_rows_ of them in use
  int64_t draft_rows_ = 0;
  Batch batch_;
  std::vector<model::v41::SequenceChunk> chunks_;
};

}  // namespace deepinfer::exec
