#include <algorithm>
#include <utility>

#include "sched/scheduler.h"

namespace deepinfer::sched {

Result<const StepPlan*> Scheduler::Next(Time now) {
  if (steps_in_flight() >= options_.steps_in_flight) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} steps are in flight, at most {} may be: step {} must be advanced first",
                     steps_in_flight(), options_.steps_in_flight, oldest_step_);
  }
  Expire(now);
  Flight& flight = FlightOf(next_step_);
  flight.owners.clear();
  flight.plan.rows.clear();
  flight.plan.block_ids.clear();
  flight.plan.token_count = 0;
  flight.plan.step = -1;
  preempted_ = false;
  PlanDecodes(flight);
  PlanPrefills(flight);
  if (!flight.plan.empty()) {
    flight.plan.step = next_step_++;
    memory_.Launched(flight.plan.step);
  }
  return &flight.plan;
}

void Scheduler::Expire(Time now) {
  while (!deadlines_.empty() && deadlines_.top().deadline <= now) {
    Finish(deadlines_.top(), FinishReason::kDeadline);
  }
}

void Scheduler::PlanDecodes(Flight& flight) {
  // Preemption takes from the end of running_, so what stands before i stays.
  for (int64_t i = 0; i < std::ssize(running_); ++i) {
    Request& request = *running_[i];
    if (auto* decoding = std::get_if<Decoding>(&request.state)) {
      PlanDecode(flight, request, *decoding);
    }
  }
}

void Scheduler::PlanDecode(Flight& flight, Request& request, Decoding& decoding) {
  const int64_t start = request.length() - 1 + decoding.pending_min;
  const int64_t last = request.max_length - 2;  // the token at max_length - 1 is never computed
  if (start > last) return;                     // steps in flight end it
  const int64_t farthest_start = std::min(request.length() - 1 + decoding.pending_max, last);
  const int64_t drafts = std::min(request.draft_tokens, last - start);
  const int64_t farthest_end = std::min(farthest_start + 1 + drafts, last + 1);
  if (!ReserveBlocks(request, decoding.sequence,
                     cache::BlocksFor(farthest_end, options_.block_tokens))) {
    return;
  }
  PlanRow& row = AddRow(flight, request, decoding.sequence, start, 1 + drafts);
  row.start_slack = farthest_start - start;
  row.draft_count = drafts;
  row.logits = drafts > 0 ? Logits::kAll : Logits::kLast;
  row.samples = true;
  decoding.pending_min += 1;
  decoding.pending_max += 1 + drafts;
  const int64_t end = start + 1;
  if (options_.prefix_mode == cache::PrefixMode::kDeterministic && drafts == 0 &&
      row.start_slack == 0 && end % options_.snapshot_interval == 0 &&
      end >= options_.min_hit_tokens) {
    flight.owners.back().save = memory_.index().snapshots().Allocate();
    row.save = flight.owners.back().save.id();
  }
}

// Makes the sequence's table `blocks` long, at the cost of requests that are served later. False
// when it has to wait for a step in flight, or was preempted itself.
bool Scheduler::ReserveBlocks(Request& request, Sequence& sequence, int64_t blocks) {
  const int64_t missing = blocks - sequence.blocks.size();
  if (missing <= 0) return true;
  while (missing > memory_.available_blocks()) {
    if (missing <= memory_.available_blocks() + memory_.retiring_blocks()) return false;
    Request& victim = *running_.back();
    Preempt(victim);
    if (&victim == &request) return false;
  }
  memory_.Append(sequence.blocks, missing);
  return true;
}

// Back to the queue, at its old place, with the tokens it has. Its cached blocks stay until
// evicted.
void Scheduler::Preempt(Request& request) {
  LeaveState(request);
  ++waiting_count_;
  ++request.preemptions;
  ++preemptions_;
  preempted_ = true;
  Enqueue(request);
}

void Scheduler::PlanPrefills(Flight& flight) {
  const int64_t rows = options_.max_batched_tokens - flight.plan.token_count;
  prefilling_.clear();
  demands_.clear();
  int64_t demanded = 0;
  for (Request* request : running_) {
    const auto* prefilling = std::get_if<Prefilling>(&request->state);
    if (prefilling == nullptr) continue;
    const int64_t position = prefilling->position;
    const int64_t stop = SnapshotStop(*request, prefilling->branch, position, prefilling->end);
    prefilling_.push_back(request);
    demands_.push_back({position, stop, prefilling->end - position, position});
    demanded += stop - position;
  }
  // New requests may take half of the rows, and what the running ones leave.
  const int64_t reserved = queue_.empty() ? 0 : rows / 2;
  const int64_t taken = AdmitNew(flight, rows - std::min(demanded, rows - reserved));
  SharePrefillRows(rows - taken, options_.block_tokens, demands_, demand_order_);
  for (size_t i = 0; i < prefilling_.size(); ++i) {
    if (demands_[i].chunk_end > demands_[i].position) {
      PlanChunk(flight, *prefilling_[i], demands_[i].chunk_end);
    }
  }
}

// Admits requests in service order until one does not fit, and plans their first chunks within
// `rows`. Returns the rows taken.
int64_t Scheduler::AdmitNew(Flight& flight, int64_t rows) {
  int64_t left = rows;
  // Blocks that a preemption made available are for those that run.
  while (left > 0 && !preempted_ && !queue_.empty() && memory_.free_slots() > 0) {
    Request& request = queue_.top();
    if (request.rows_in_flight > 0) break;
    cache::PrefixHit hit;
    if (options_.prefix_mode != cache::PrefixMode::kOff) {
      cache::ExtendChain(request.hash_root, request.tokens, options_.block_tokens, request.chain);
      if (!request.prompt_logprobs) {
        hit = cache::FindHit(memory_.index(), match_rules_, request.chain, request.length(),
                             request.prompt_tokens);
      }
    }
    const int64_t stop = SnapshotStop(request, hit.shared, hit.start, request.length());
    const int64_t chunk_end = ChunkEnd(hit.start, stop, left, options_.block_tokens);
    if (chunk_end == hit.start || !Admissible(request, hit)) break;
    Admit(request, hit);
    PlanChunk(flight, request, chunk_end);
    left -= chunk_end - hit.start;
  }
  return rows - left;
}

// Blocks for the tokens known so far and the step that follows them.
int64_t Scheduler::BlocksForNextStep(const Request& request) const {
  return cache::BlocksFor(
      std::min(request.length() + 1 + request.draft_tokens, request.max_length - 1),
      options_.block_tokens);
}

bool Scheduler::Admissible(Request& request, const cache::PrefixHit& hit) {
  const int64_t hit_blocks = hit.tokens / options_.block_tokens;
  const int64_t idle_hits = memory_.index().CountIdle(std::span(request.chain).first(hit_blocks));
  const int64_t watermark = running_.empty() ? 0 : options_.watermark_blocks;
  return BlocksForNextStep(request) - hit_blocks + watermark <=
         memory_.available_blocks() - idle_hits;
}

void Scheduler::Admit(Request& request, const cache::PrefixHit& hit) {
  queue_.Remove(request);
  --waiting_count_;
  const int64_t hit_blocks = hit.tokens / options_.block_tokens;
  const int64_t most_blocks = cache::BlocksFor(request.max_length, options_.block_tokens);
  // From here on the tokens do not move: plans in flight point to them.
  request.tokens.reserve(request.max_length);
  if (options_.prefix_mode != cache::PrefixMode::kOff) request.chain.reserve(most_blocks);

  Prefilling prefilling;
  Sequence& sequence = prefilling.sequence;
  sequence.slot = memory_.AllocateSlot();
  sequence.blocks.Reserve(most_blocks);
  const auto hashes = std::span(request.chain).first(hit_blocks);
  memory_.index().Acquire(hashes, sequence.blocks);
  memory_.Append(sequence.blocks, BlocksForNextStep(request) - hit_blocks);
  sequence.cached_blocks = hit_blocks;
  sequence.confirmed = hit.tokens;
  if (hit.start < hit.tokens) {
    sequence.replay_start = hit.start;
    sequence.write_floor = hit.tokens;
  } else if (hit.tokens > 0) {
    prefilling.restore = memory_.index().AcquireSnapshot(hashes.back());
  }
  prefilling.position = hit.start;
  prefilling.end = request.length();
  prefilling.branch = hit.shared;
  if (!request.cached_tokens) {
    request.cached_tokens = hit.tokens;
    prefix_query_tokens_ += request.prompt_tokens;
    prefix_hit_tokens_ += hit.tokens;
  }
  request.state = std::move(prefilling);
  const auto place =
      std::upper_bound(running_.begin(), running_.end(), &request,
                       [](const Request* a, const Request* b) { return a->order < b->order; });
  running_.insert(place, &request);
}

void Scheduler::PlanChunk(Flight& flight, Request& request, int64_t chunk_end) {
  Prefilling& prefilling = std::get<Prefilling>(request.state);
  PlanRow& row = AddRow(flight, request, prefilling.sequence, prefilling.position,
                        chunk_end - prefilling.position);
  RowOwner& owner = flight.owners.back();
  row.first = std::exchange(prefilling.first, false);
  owner.restore = std::move(prefilling.restore);
  row.restore = owner.restore.id();
  row.samples = chunk_end == prefilling.end;
  row.logits = row.samples ? Logits::kLast : Logits::kNone;
  if (request.prompt_logprobs) row.logits = Logits::kAll;
  if (!row.samples &&
      chunk_end == SnapshotStop(request, prefilling.branch, prefilling.position, prefilling.end)) {
    owner.save = memory_.index().snapshots().Allocate();
    row.save = owner.save.id();
  }
  prefilling.position = chunk_end;
  if (row.samples) request.state = BeginDecoding(std::move(prefilling));
}

// Where a chunk from `position` must end: at the next place where a snapshot is due that is not
// there yet, or at `end`. Due are the multiples of snapshot_interval, the last block boundary that
// leaves a token to compute, and `branch`: prompts that begin alike part there.
int64_t Scheduler::SnapshotStop(const Request& request, int64_t branch, int64_t position,
                                int64_t end) {
  if (options_.prefix_mode != cache::PrefixMode::kDeterministic) return end;
  const int64_t interval = options_.snapshot_interval;
  const int64_t last = (end - 1) / options_.block_tokens * options_.block_tokens;
  const auto due = [&](int64_t stop) {
    return stop > position && stop <= last && stop >= options_.min_hit_tokens &&
           !memory_.index().HasSnapshot(request.chain[stop / options_.block_tokens - 1]);
  };
  int64_t stop = due(last) ? last : end;
  if (branch < stop && due(branch)) stop = branch;
  for (int64_t next = position / interval * interval + interval; next < std::min(stop, last + 1);
       next += interval) {
    if (due(next)) return next;
  }
  return stop;
}

PlanRow& Scheduler::AddRow(Flight& flight, Request& request, Sequence& sequence, int64_t start,
                           int64_t count) {
  StepPlan& plan = flight.plan;
  PlanRow& row = plan.rows.emplace_back();
  row.request = request.id;
  row.slot = sequence.slot.id();
  row.start = start;
  row.count = count;
  row.max_length = request.max_length;
  row.known = request.tokens;
  if (start < request.length()) {
    row.tokens = row.known.subspan(start, std::min(count, request.length() - start));
  }
  row.prompt_tokens = request.prompt_tokens;
  row.first_new_block = sequence.told_blocks;
  row.new_blocks_begin = std::ssize(plan.block_ids);
  for (int64_t i = sequence.told_blocks; i < sequence.blocks.size(); ++i) {
    plan.block_ids.push_back(sequence.blocks.id(i));
  }
  row.new_blocks_count = std::ssize(plan.block_ids) - row.new_blocks_begin;
  sequence.told_blocks = sequence.blocks.size();
  row.replay_start = sequence.replay_start;
  row.write_floor = sequence.write_floor;
  plan.token_count += count;
  flight.owners.push_back({&request, {}, {}});
  ++request.rows_in_flight;
  return row;
}

}  // namespace deepinfer::sched
