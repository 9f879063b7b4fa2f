// Decides what each step computes: continuous batching with chunked prefill, admission by counted
// blocks, preemption, prefix cache. A pure state machine: time, requests and results come in as
// values, plans go out. Source: spec algorithms sections 2 and 10.1. See docs/scheduler.md.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "sched/indexed_heap.h"
#include "sched/memory.h"
#include "sched/options.h"
#include "sched/plan.h"
#include "sched/prefill_share.h"
#include "sched/request.h"

namespace deepinfer::sched {

struct SchedulerStats {
  int64_t waiting = 0;  // in the queue, or for another request's prompt
  int64_t running = 0;
  int64_t steps = 0;
  int64_t preemptions = 0;
  int64_t prefix_query_tokens = 0;  // prompt tokens of first admissions
  int64_t prefix_hit_tokens = 0;    // of them, served by the prefix cache
  int64_t blocks = 0;
  int64_t free_blocks = 0;
  int64_t idle_blocks = 0;  // cached, held by no sequence
  int64_t held_blocks = 0;
  int64_t held_slots = 0;
  int64_t held_snapshots = 0;
};

// Not thread-safe. The loop of its owner, with steps_in_flight 2:
//   plan n + 1 = Next(now); launch it; wait for step n; Advance(result n); TakeFinished(...)
// The same requests give the same tokens whatever the batches, as far as a row's result depends on
// its sequence alone.
class Scheduler {
 public:
  static Result<std::unique_ptr<Scheduler>> Create(const SchedulerOptions& options);

  // Errors: an id in use, an empty prompt, a priority out of range, lengths beyond max_model_len or
  // the memory (such a request could never run to its end), an unknown shares_prompt_with.
  Status Add(NewRequest request, Time now);
  // The request ends at once; what it computes in steps in flight is dropped. Errors: no such
  // request, or it is finished.
  Status Cancel(RequestId id);
  // Draft rows of each of the request's decoding steps from the next plan on; blocks for them are
  // reserved with the plan. Errors: no such request, or beyond max_draft_tokens.
  Status SetDraftTokens(RequestId id, int64_t drafts);

  // Ends requests whose deadline is not after `now`, then plans a step. The plan may be empty: then
  // nothing can run before a step in flight ends or a request comes. Errors: steps_in_flight steps
  // are in flight.
  Result<const StepPlan*> Next(Time now);
  // Takes in the results of the oldest step in flight. Errors leave everything unchanged: another
  // step, other rows than the plan's, a number of tokens that the row cannot have.
  Status Advance(const StepResult& result);

  // Appends the requests that have ended since the last call, in that order.
  void TakeFinished(std::vector<FinishedRequest>& finished);

  // Requests that are neither finished nor dropped.
  int64_t unfinished() const { return waiting_count_ + std::ssize(running_); }
  int64_t steps_in_flight() const { return next_step_ - oldest_step_; }
  // Tokens of a request that has not ended: prompt and confirmed output. Empty for others.
  std::span<const int32_t> Tokens(RequestId id) const;
  SchedulerStats stats() const;

 private:
  // What belongs to a row but is none of the executor's business.
  struct RowOwner {
    Request* request;
    cache::SnapshotRef restore;
    cache::SnapshotRef save;
  };
  struct Flight {
    StepPlan plan;
    std::vector<RowOwner> owners;  // one a row
  };
  struct QueueBefore {
    bool operator()(const Request& a, const Request& b) const { return a.order < b.order; }
  };
  struct DeadlineBefore {
    bool operator()(const Request& a, const Request& b) const {
      return std::tie(a.deadline, a.order) < std::tie(b.deadline, b.order);
    }
  };

  explicit Scheduler(const SchedulerOptions& options);

  // scheduler.cc: how requests come and go.
  Status CheckNew(const NewRequest& request) const;
  Request* Find(RequestId id);
  void Finish(Request& request, FinishReason reason);
  void LeaveState(Request& request);
  void Enqueue(Request& request);
  void ReleaseFollowers(Request& request);

  // plan_step.cc: Next().
  void Expire(Time now);
  void PlanDecodes(Flight& flight);
  void PlanDecode(Flight& flight, Request& request, Decoding& decoding);
  bool ReserveBlocks(Request& request, Sequence& sequence, int64_t blocks);
  void Preempt(Request& request);
  void PlanPrefills(Flight& flight);
  int64_t AdmitNew(Flight& flight, int64_t rows);
  bool Admissible(Request& request, const cache::PrefixHit& hit);
  void Admit(Request& request, const cache::PrefixHit& hit);
  void PlanChunk(Flight& flight, Request& request, int64_t chunk_end);
  int64_t SnapshotStop(const Request& request, int64_t branch, int64_t position, int64_t end);
  PlanRow& AddRow(Flight& flight, Request& request, Sequence& sequence, int64_t start,
                  int64_t count);
  int64_t BlocksForNextStep(const Request& request) const;

  // advance_step.cc: Advance().
  Status CheckResult(const StepResult& result, const Flight& flight) const;
  void ApplyRow(const PlanRow& row, RowOwner& owner, const RowResult& result);
  void AcceptTokens(Request& request, const PlanRow& row, std::span<const int32_t> tokens);
  void CacheConfirmed(Request& request, Sequence& sequence);

  Flight& FlightOf(int64_t step) { return flights_[step % std::ssize(flights_)]; }

  SchedulerOptions options_;
  cache::MatchRules match_rules_;
  SequenceMemory memory_;  // outlives every request
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  IndexedHeap<Request, QueueBefore, &Request::queue_place> queue_;
  IndexedHeap<Request, DeadlineBefore, &Request::deadline_place> deadlines_;
  std::vector<Request*> running_;  // in service order
  int64_t waiting_count_ = 0;
  uint64_t arrivals_ = 0;
  std::vector<FinishedRequest> finished_;

  std::vector<Flight> flights_;
  int64_t next_step_ = 0;
  int64_t oldest_step_ = 0;
  bool preempted_ = false;  // in the step that is being planned
  std::vector<Request*> prefilling_;
  std::vector<PrefillDemand> demands_;
  std::vector<int64_t> demand_order_;

  int64_t preemptions_ = 0;
  int64_t prefix_query_tokens_ = 0;
  int64_t prefix_hit_tokens_ = 0;
};

}  // namespace deepinfer::sched
