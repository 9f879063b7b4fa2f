#include "exec/executor.h"

#include <algorithm>
#include <chrono>

#include "sampling/logit_processor.h"

namespace deepinfer::exec {
namespace {

using model::v41::ForwardContext;
using model::v41::SequenceChunk;
using sched::PlanRow;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Executor::Executor(const model::v41::Model& model, PagedMemory& memory,
                   const ExecutorOptions& options)
    : model_(model), memory_(memory), options_(options), drafter_(model) {}

void Executor::Run(ForwardContext& context, Step& step) {
  const std::vector<PlanRow>& rows = step.plan->rows;
  step.outputs.resize(rows.size());
  step.timing = {};
  const auto workers = static_cast<size_t>(context.pool().size());
  if (samplers_.size() < workers) samplers_.resize(workers, Sampler(options_.logprobs_mode));
  if (scratch_.size() < workers) scratch_.resize(workers);
  batch_.clear();
  draft_rows_ = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    step.outputs[i].Clear();
    const std::optional<SequenceChunk> chunk = Prepare(step, i);
    if (chunk && rows[i].draft_count > 0) {
      BeginDrafts(rows[i], i, *chunk);
    } else if (chunk && rows[i].logits != sched::Logits::kAll) {
      batch_.push_back({.index = i, .chunk = *chunk, .samples = rows[i].samples});
      batch_.back().chunk.logits_rows = rows[i].logits == sched::Logits::kLast ? 1 : 0;
    } else if (chunk) {
      RunPromptRow(context, step, {.index = i, .chunk = *chunk, .samples = rows[i].samples});
    }
  }
  if (draft_rows_ > 0) Draft(context, step);
  if (!batch_.empty()) RunBatch(context, step, batch_);
  for (size_t i = 0; i < rows.size(); ++i) {
    SlotState& slot = memory_.slot(rows[i].slot);
    if (!step.outputs[i].status) {
      slot.failed = true;
    } else if (rows[i].save != cache::kNoSnapshot) {
      step.outputs[i].status = slot.state.SaveSnapshot(memory_.snapshot(rows[i].save));
    }
  }
}

std::optional<SequenceChunk> Executor::Prepare(Step& step, size_t index) {
  const PlanRow& row = step.plan->rows[index];
  SlotState& slot = memory_.slot(row.slot);
  RowOutput& out = step.outputs[index];
  if (step.rows[index].sequence->ended()) return std::nullopt;
  if (slot.failed && !row.first) {
    out.status = MakeError(ErrorCode::kCancelled, "the sequence has failed before");
    return std::nullopt;
  }
  if (row.first) {
    slot.newest = -1;
    slot.failed = false;
    slot.table.clear();
    slot.state.Clear();
    if (row.restore != cache::kNoSnapshot) {
      out.status = slot.state.RestoreSnapshot(memory_.snapshot(row.restore));
      if (!out.status) return std::nullopt;
    }
  }
  // Drafts that stood have ended the sequence.
  if (!row.first && slot.state.length() > row.max_length - 2) return std::nullopt;
  slot.table.resize(static_cast<size_t>(row.first_new_block));
  for (const cache::BlockId id : step.plan->NewBlocks(row)) slot.table.push_back(memory_.block(id));
  slot.state.ViewBlocks(slot.table);
  SequenceChunk chunk{.state = &slot.state,
                      .tokens = row.tokens,
                      .decoder_start = DecoderStart(options_.prefill, row.prompt_tokens),
                      .replay_start = row.replay_start,
                      .write_floor = row.write_floor};
  if (row.tokens.empty()) chunk.tokens = {&slot.newest, 1};
  if (row.first && row.replay_start > 0) {
    const int64_t lookback =
        std::min<int64_t>(model_.config().engram_max_ngram - 1, row.replay_start);
    chunk.lookback = row.known.subspan(row.replay_start - lookback, lookback);
  }
  return chunk;
}

void Executor::BeginDrafts(const PlanRow& row, size_t index, const SequenceChunk& chunk) {
  if (std::ssize(drafts_) == draft_rows_) drafts_.emplace_back();
  const int64_t room = row.max_length - 2 - chunk.state->length();
  drafts_[static_cast<size_t>(draft_rows_)].Begin(index, *chunk.state, chunk.tokens[0],
                                                  std::min(row.draft_count, room));
  batch_.push_back({.index = index, .chunk = chunk, .samples = true, .draft = draft_rows_++});
}

void Executor::Draft(ForwardContext& context, Step& step) {
  drafter_.Draft(context, step, std::span(drafts_).first(static_cast<size_t>(draft_rows_)),
                 samplers_);
  for (Work& work : batch_) {
    if (work.draft < 0) continue;
    const DraftRow& row = drafts_[static_cast<size_t>(work.draft)];
    work.chunk.tokens = row.tokens;
    work.chunk.logits_rows = std::ssize(row.tokens);
    step.outputs[work.index].drafts = std::ssize(row.tokens) - 1;
  }
  std::erase_if(batch_, [&](const Work& work) {
    return work.draft >= 0 &&
           (!step.outputs[work.index].status || drafts_[static_cast<size_t>(work.draft)].skip());
  });
}

void Executor::RunPromptRow(ForwardContext& context, Step& step, const Work& row) {
  const std::span<const int32_t> tokens = row.chunk.tokens;
  for (int64_t begin = 0; begin < std::ssize(tokens);) {
    const int64_t count = std::min(options_.logits_rows, std::ssize(tokens) - begin);
    Batch part = {row};
    part[0].chunk.tokens = tokens.subspan(begin, count);
    part[0].chunk.logits_rows = count;
    part[0].samples = row.samples && begin + count == std::ssize(tokens);
    RunBatch(context, step, part);
    if (!step.outputs[row.index].status) return;
    begin += count;
  }
}

void Executor::RunBatch(ForwardContext& context, Step& step, Batch& batch) {
  const Status status = Forward(context, step, batch);
  if (status) return Sample(context, step, batch);
  if (batch.size() == 1) {
    step.outputs[batch[0].index].status = status;
    return;
  }
  // A forward that fails changes nothing, so whoever does not cause it can go on.
  for (const Work& work : batch) {
    Batch single = {work};
    RunBatch(context, step, single);
  }
}

Status Executor::Forward(ForwardContext& context, Step& step, Batch& batch) {
  const auto start = Clock::now();
  int64_t rows = 0;
  chunks_.clear();
  bool best_suffices = true;
  for (Work& work : batch) {
    work.first_logits = rows;
    rows += work.chunk.logits_rows;
    chunks_.push_back(work.chunk);
    if (work.chunk.logits_rows > 0) best_suffices = best_suffices && TakesBestOf(step, work);
  }
  head_.topk = best_suffices ? 1 : 0;
  const Status status = model_.Forward(context, chunks_, head_);
  step.timing.forward += SecondsSince(start);
  return status;
}

// Whether the row's largest logit is all that is wanted of it. What a grammar masks is not known
// yet.
bool Executor::TakesBestOf(const Step& step, const Work& work) const {
  const RowInput& input = step.rows[work.index];
  return (work.draft >= 0 || step.plan->rows[work.index].logits == sched::Logits::kLast) &&
         input.gate == nullptr && TakesBest(input.sequence->Row(0), input.sequence->params());
}

void Executor::Sample(ForwardContext& context, Step& step, const Batch& batch) {
  const auto start = Clock::now();
  for (const Work& work : batch) {
    const RowInput& input = step.rows[work.index];
    if (work.samples && input.gate != nullptr) input.gate->Wait();
  }
  const auto masked = Clock::now();
  step.timing.mask += std::chrono::duration<double>(masked - start).count();
  for (const Work& work : batch) {
    if (work.draft < 0 && step.plan->rows[work.index].logits == sched::Logits::kAll) {
      PromptLogprobs(context, step, work);
    }
  }
  context.pool().ParallelFor(std::ssize(batch), 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) {
      const Work& work = batch[static_cast<size_t>(i)];
      if (!work.samples) continue;
      const RowInput& input = step.rows[work.index];
      if (input.gate != nullptr && input.gate->state() == MaskGate::State::kSkip) continue;
      SampleRows(step, work, samplers_[static_cast<size_t>(worker)]);
    }
  });
  step.timing.sample += SecondsSince(masked);
}

void Executor::SampleRows(Step& step, const Work& work, Sampler& sampler) {
  const RowInput& input = step.rows[work.index];
  RowOutput& out = step.outputs[work.index];
  SlotState& slot = memory_.slot(step.plan->rows[work.index].slot);
  DraftRow* const draft = work.draft < 0 ? nullptr : &drafts_[static_cast<size_t>(work.draft)];
  const int64_t rows = draft == nullptr ? 1 : work.chunk.logits_rows;
  for (int64_t k = 0; k < rows; ++k) {
    const int64_t behind = rows - 1 - k;
    MaskGate::State state = MaskGate::State::kOpen;
    std::span<const uint32_t> mask;
    if (draft != nullptr) {
      state = draft->states[static_cast<size_t>(k)];
      if (state == MaskGate::State::kMasked) mask = draft->Mask(static_cast<size_t>(k));
    } else if (input.gate != nullptr && input.gate->state() == MaskGate::State::kMasked) {
      mask = input.gate->words();
    }
    if (state == MaskGate::State::kSkip) break;
    const Result<int32_t> token = Draw(step, work, work.chunk.logits_rows - 1 - behind,
                                       work.chunk.state->length() - behind, mask, sampler);
    if (!token) {
      if (input.sequence->params().logprobs) out.logprobs.pop_back();
      // Behind drafts that stand it is the next step's error: the tokens before it count.
      if (k == 0) out.status = tl::unexpected(token.error());
      break;
    }
    out.tokens.push_back(*token);
    slot.newest = *token;
    input.sequence->Append(*token);
    const bool stands = behind > 0 && *token == draft->tokens[static_cast<size_t>(k + 1)];
    if (!stands || input.sequence->ended()) break;
  }
  if (draft != nullptr && out.status) {
    out.status = work.chunk.state->Rollback(draft->start + std::ssize(out.tokens));
  }
}

Result<int32_t> Executor::Draw(Step& step, const Work& work, int64_t k, int64_t position,
                               std::span<const uint32_t> mask, Sampler& sampler) {
  const RowInput& input = step.rows[work.index];
  const int64_t head_row = work.first_logits + k;
  if (head_.topk > 0) {
    const auto best = static_cast<size_t>(head_row * head_.topk);
    return BestToken(head_.logits[best], head_.ids[best], model_.config().vocab_size);
  }
  SampleRow row = input.sequence->Row(position);
  row.logits = LogitsOf(head_row);
  row.grammar_mask = mask;
  const SamplingParams& params = input.sequence->params();
  if (!params.logprobs) return sampler.Sample(row, params);
  return sampler.Sample(row, params, &step.outputs[work.index].logprobs.emplace_back());
}

// The logits of position p are those of the token at p + 1.
void Executor::PromptLogprobs(ForwardContext& context, Step& step, const Work& work) {
  const PlanRow& row = step.plan->rows[work.index];
  SequenceSampling& sequence = *step.rows[work.index].sequence;
  RowOutput& out = step.outputs[work.index];
  const int64_t end = work.chunk.state->length(), rows = work.chunk.logits_rows;
  const int64_t from = std::max(end - rows, sequence.prompt_rows_done);
  const int64_t to = std::min(end, row.prompt_tokens - 1);
  if (from >= to) return;
  const auto first = out.prompt_logprobs.size();
  out.prompt_logprobs.resize(first + static_cast<size_t>(to - from));
  std::vector<Status> statuses(static_cast<size_t>(to - from));
  context.pool().ParallelFor(to - from, 1, [&](int64_t begin, int64_t stop, int worker) {
    for (int64_t i = begin; i < stop; ++i) {
      const int64_t position = from + i;
      statuses[static_cast<size_t>(i)] =
          RawLogprobs(LogitsOf(work.first_logits + rows - (end - position)),
                      row.known[static_cast<size_t>(position + 1)],
                      *sequence.params().prompt_logprobs, scratch_[static_cast<size_t>(worker)],
                      out.prompt_logprobs[first + static_cast<size_t>(i)]);
    }
  });
  for (const Status& status : statuses) {
    if (!status && out.status) out.status = status;
  }
  sequence.prompt_rows_done = to;
}

std::span<const float> Executor::LogitsOf(int64_t row) const {
  const auto vocab = static_cast<size_t>(model_.config().vocab_size);
  return std::span(head_.logits).subspan(static_cast<size_t>(row) * vocab, vocab);
}

}  // namespace deepinfer::exec
