#include "exec/drafter.h"

#include <algorithm>
#include <chrono>

#include "exec/grammar_lookahead.h"

namespace deepinfer::exec {
namespace {

using model::v41::DraftDraw;
using model::v41::ForwardContext;
using State = MaskGate::State;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// As if no draft had been drawn but those that stand in the row.
void Forget(const RowInput& input, const DraftRow& row) {
  input.sequence->RollbackDrafts(std::ssize(row.tokens) - 1);
  if (input.gate != nullptr) input.lookahead->Forget();
}

}  // namespace

void DraftRow::Begin(size_t row, const model::v41::SequenceState& sequence, int32_t newest,
                     int64_t most) {
  index = row;
  state = &sequence;
  start = sequence.length();
  wanted = most;
  closed = false;
  tokens.assign(1, newest);
  states.assign(1, State::kOpen);
  mask_words = 0;
}

void Drafter::Draft(ForwardContext& context, Step& step, std::span<DraftRow> rows,
                    std::span<Sampler> samplers) {
  const auto start = Clock::now();
  drafting_.clear();
  for (DraftRow& row : rows) {
    WaitForMask(step.rows[row.index], row);
    if (row.wanted > 0 && !row.skip()) drafting_.push_back(&row);
  }
  const auto masked = Clock::now();
  step.timing.mask += std::chrono::duration<double>(masked - start).count();
  if (!drafting_.empty()) RunRows(context, step, drafting_, samplers);
  step.timing.draft += SecondsSince(masked);
}

void Drafter::WaitForMask(const RowInput& input, DraftRow& row) {
  if (input.gate == nullptr) return;
  row.states[0] = input.gate->Wait();
  const std::span<const uint32_t> first = input.gate->words();
  row.mask_words = first.size();
  row.masks.resize(static_cast<size_t>(1 + row.wanted) * row.mask_words);
  std::ranges::copy(first, row.masks.begin());
}

void Drafter::RunRows(ForwardContext& context, Step& step, std::span<DraftRow* const> rows,
                      std::span<Sampler> samplers) {
  inputs_.clear();
  for (const DraftRow* row : rows) {
    inputs_.push_back({.state = row->state, .next = row->tokens[0], .drafts = row->wanted});
  }
  const auto sampler = [&](const DraftDraw& draw) {
    return Draw(step, *rows[static_cast<size_t>(draw.sequence)], draw,
                samplers[static_cast<size_t>(draw.worker)]);
  };
  const Status status = model_.Draft(context, inputs_, sampler, out_);
  for (DraftRow* row : rows) Forget(step.rows[row->index], *row);
  if (status) return;
  for (DraftRow* const& row : rows) {
    row->tokens.resize(1);
    row->states.resize(1);
    row->closed = false;
    if (rows.size() > 1) {
      RunRows(context, step, {&row, 1}, samplers);
    } else {
      step.outputs[row->index].status = status;
    }
  }
}

int32_t Drafter::Draw(Step& step, DraftRow& row, const DraftDraw& draw, Sampler& sampler) {
  if (row.closed) return -1;
  const RowInput& input = step.rows[row.index];
  SequenceSampling& sequence = *input.sequence;
  const auto k = static_cast<size_t>(draw.step);
  SampleRow sample = sequence.Row(draw.position);
  sample.logits = draw.logits;
  if (row.states[k] == State::kMasked) sample.grammar_mask = row.Mask(k);
  // Logits that nothing can be drawn from: then the model's own shall say so.
  const Result<int32_t> token = sampler.Sample(sample, sequence.params());
  if (!token) return -1;
  row.tokens.push_back(*token);
  sequence.AppendDraft(*token);
  State next = State::kOpen;
  if (input.gate != nullptr) {
    next = input.lookahead->Follow(*token, row.Mask(k + 1));
  } else if (sequence.Ends(*token)) {
    next = State::kSkip;
  }
  row.states.push_back(next);
  row.closed = next == State::kSkip;
  return *token;
}

}  // namespace deepinfer::exec
