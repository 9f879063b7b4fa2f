#include <algorithm>
#include <utility>

#include "sched/scheduler.h"

namespace deepinfer::sched {

Status Scheduler::CheckResult(const StepResult& result, const Flight& flight) const {
  const StepPlan& plan = flight.plan;
  if (result.rows.size() != plan.rows.size()) {
    return MakeError(ErrorCode::kInvalidArgument, "step {}: {} results, the plan has {} rows",
                     result.step, result.rows.size(), plan.rows.size());
  }
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const PlanRow& row = plan.rows[i];
    const RowResult& row_result = result.rows[i];
    if (row_result.request != row.request) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "step {}: result {} is of request {}, row {} of request {}", result.step, i,
                       row_result.request, i, row.request);
    }
    if (std::holds_alternative<Finished>(flight.owners[i].request->state)) continue;
    const int64_t tokens = std::ssize(row_result.tokens);
    const int64_t least = row.samples && !row_result.finish ? 1 : 0;
    const int64_t most = row.samples ? 1 + row.draft_count : 0;
    if (tokens < least || tokens > most) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "step {}, request {}: {} tokens, the row can have {} to {}", result.step,
                       row.request, tokens, least, most);
    }
  }
  return {};
}

Status Scheduler::Advance(const StepResult& result) {
  if (steps_in_flight() == 0 || result.step != oldest_step_) {
    return MakeError(ErrorCode::kInvalidArgument, "step {} cannot be advanced: {}", result.step,
                     steps_in_flight() == 0 ? std::string("none is in flight")
                                            : fmt::format("{} comes first", oldest_step_));
  }
  Flight& flight = FlightOf(result.step);
  DI_RETURN_IF_ERROR(CheckResult(result, flight));
  ++oldest_step_;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    ApplyRow(flight.plan.rows[i], flight.owners[i], result.rows[i]);
  }
  flight.owners.clear();
  memory_.Ended(result.step);
  return {};
}

void Scheduler::ApplyRow(const PlanRow& row, RowOwner& owner, const RowResult& result) {
  Request& request = *owner.request;
  --request.rows_in_flight;
  if (std::holds_alternative<Finished>(request.state)) {
    if (request.rows_in_flight == 0) requests_.erase(request.id);
    return;
  }
  if (row.samples) AcceptTokens(request, row, result.tokens);
  // What a failed request computed may be broken, so nobody else shall find it.
  Sequence* sequence = RunningSequence(request);
  if (sequence != nullptr && result.finish != FinishReason::kFailed) {
    // The newest token itself is not computed yet.
    sequence->confirmed = row.samples ? request.length() - 1 : row.start + row.count;
    CacheConfirmed(request, *sequence);
    const int64_t end = row.start + row.count;
    if (owner.save && end <= sequence->confirmed) {
      memory_.index().snapshots().Attach(sequence->blocks.id(end / options_.block_tokens - 1),
                                         std::move(owner.save));
    }
  }
  // A request that was preempted meanwhile lets its followers wait until it resumes: its prompt may
  // not be in the cache.
  if (row.samples && sequence != nullptr) ReleaseFollowers(request);
  if (result.finish) {
    Finish(request, *result.finish);
  } else if (request.length() >= request.max_length) {
    Finish(request, FinishReason::kLength);
  }
}

void Scheduler::AcceptTokens(Request& request, const PlanRow& row,
                             std::span<const int32_t> tokens) {
  const int64_t room = request.max_length - request.length();
  const auto accepted = tokens.first(std::min<int64_t>(std::ssize(tokens), room));
  request.tokens.insert(request.tokens.end(), accepted.begin(), accepted.end());
  // Absent when the request was preempted after this step was planned: the tokens count all the
  // same, since computing them again would give the same.
  if (auto* decoding = std::get_if<Decoding>(&request.state)) {
    decoding->pending_min -= 1;
    decoding->pending_max -= 1 + row.draft_count;
  }
}

void Scheduler::CacheConfirmed(Request& request, Sequence& sequence) {
  if (options_.prefix_mode == cache::PrefixMode::kOff) return;
  const int64_t full = sequence.confirmed / options_.block_tokens;
  if (full <= sequence.cached_blocks) return;
  cache::ExtendChain(request.hash_root,
                     std::span(request.tokens).first(full * options_.block_tokens),
                     options_.block_tokens, request.chain);
  for (int64_t i = sequence.cached_blocks; i < full; ++i) {
    cache::BlockRef own = memory_.index().Insert(request.chain[i], i, sequence.blocks);
    if (!own) continue;
    memory_.Retire(std::move(own));
    sequence.told_blocks = std::min(sequence.told_blocks, i);
  }
  sequence.cached_blocks = full;
}

}  // namespace deepinfer::sched
