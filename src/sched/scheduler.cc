#include "sched/scheduler.h"

#include <algorithm>
#include <utility>

namespace deepinfer::sched {

Result<std::unique_ptr<Scheduler>> Scheduler::Create(const SchedulerOptions& options) {
  DI_RETURN_IF_ERROR(ValidateSchedulerOptions(options));
  return std::unique_ptr<Scheduler>(new Scheduler(options));
}

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options),
      match_rules_{options.prefix_mode, options.block_tokens, options.min_hit_tokens,
                   options.window_tokens, options.keep_tokens},
      memory_(options),
      flights_(options.steps_in_flight) {
  running_.reserve(options.max_num_seqs);
  prefilling_.reserve(options.max_num_seqs);
  demands_.reserve(options.max_num_seqs);
  demand_order_.reserve(options.max_num_seqs);
  for (Flight& flight : flights_) {
    flight.plan.rows.reserve(options.max_num_seqs);
    flight.owners.reserve(options.max_num_seqs);
  }
}

Status Scheduler::CheckNew(const NewRequest& request) const {
  if (requests_.contains(request.id)) {
    return MakeError(ErrorCode::kInvalidArgument, "request id {} is in use", request.id);
  }
  if (request.prompt.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "request {}: the prompt has 0 tokens, at least 1 is needed", request.id);
  }
  if (request.priority < -kMaxPriority || request.priority > kMaxPriority) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "request {}: priority is {}, allowed are -{} to {}", request.id,
                     request.priority, kMaxPriority, kMaxPriority);
  }
  const int64_t prompt = std::ssize(request.prompt);
  if (request.max_new_tokens < 1 || request.max_new_tokens > options_.max_model_len - prompt) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "request {}: max_new_tokens is {}; with {} prompt tokens and max_model_len {} "
                     "allowed are 1 to {}",
                     request.id, request.max_new_tokens, prompt, options_.max_model_len,
                     options_.max_model_len - prompt);
  }
  // The last token is never computed.
  const int64_t blocks =
      cache::BlocksFor(prompt + request.max_new_tokens - 1, options_.block_tokens);
  if (blocks > options_.block_count) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "request {}: {} prompt tokens and {} new ones need {} blocks of {} tokens, "
                     "there are {}",
                     request.id, prompt, request.max_new_tokens, blocks, options_.block_tokens,
                     options_.block_count);
  }
  if (request.shares_prompt_with && !requests_.contains(*request.shares_prompt_with)) {
    return MakeError(ErrorCode::kNotFound, "request {}: no request {} to share its prompt with",
                     request.id, *request.shares_prompt_with);
  }
  return {};
}

Status Scheduler::Add(NewRequest request, Time now) {
  DI_RETURN_IF_ERROR(CheckNew(request));
  auto owned = std::make_unique<Request>();
  Request& added = *owned;
  added.id = request.id;
  added.prompt_tokens = std::ssize(request.prompt);
  added.max_length = added.prompt_tokens + request.max_new_tokens;
  added.tokens = std::move(request.prompt);
  added.order = {now - request.priority * options_.priority_head_start, arrivals_++};
  added.prompt_logprobs = request.prompt_logprobs;
  if (options_.prefix_mode != cache::PrefixMode::kOff) {
    added.hash_root = cache::NamespaceHash(request.cache_salt);
    cache::ExtendChain(added.hash_root, added.tokens, options_.block_tokens, added.chain);
  }
  ++waiting_count_;
  if (request.deadline) {
    added.deadline = *request.deadline;
    deadlines_.Push(added);
  }
  Request* source = request.shares_prompt_with ? Find(*request.shares_prompt_with) : nullptr;
  // A request with output has its prompt computed, and one that has ended will compute no more.
  if (source != nullptr && source->length() == source->prompt_tokens) {
    source->followers.push_back(&added);
    added.state = AwaitingPrompt{source};
  } else {
    Enqueue(added);
  }
  requests_.emplace(added.id, std::move(owned));
  return {};
}

// Null also for requests that have ended.
Request* Scheduler::Find(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return nullptr;
  return std::holds_alternative<Finished>(found->second->state) ? nullptr : found->second.get();
}

Status Scheduler::Cancel(RequestId id) {
  Request* request = Find(id);
  if (request == nullptr) {
    return MakeError(ErrorCode::kNotFound, "no request {} is waiting or running", id);
  }
  Finish(*request, FinishReason::kCancelled);
  return {};
}

Status Scheduler::SetDraftTokens(RequestId id, int64_t drafts) {
  Request* request = Find(id);
  if (request == nullptr) {
    return MakeError(ErrorCode::kNotFound, "no request {} is waiting or running", id);
  }
  if (drafts < 0 || drafts > options_.max_draft_tokens) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "request {}: {} draft tokens, allowed are 0 to {}", id, drafts,
                     options_.max_draft_tokens);
  }
  request->draft_tokens = drafts;
  return {};
}

void Scheduler::Enqueue(Request& request) {
  request.state = Waiting{};
  queue_.Push(request);
}

void Scheduler::ReleaseFollowers(Request& request) {
  for (Request* follower : request.followers) Enqueue(*follower);
  request.followers.clear();
}

// Takes the request out of whatever its state has put it in, and gives back what the state owns.
void Scheduler::LeaveState(Request& request) {
  if (const auto* awaiting = std::get_if<AwaitingPrompt>(&request.state)) {
    std::erase(awaiting->source->followers, &request);
    --waiting_count_;
  } else if (std::holds_alternative<Waiting>(request.state)) {
    queue_.Remove(request);
    --waiting_count_;
  } else if (Sequence* sequence = RunningSequence(request)) {
    std::erase(running_, &request);
    if (auto* prefilling = std::get_if<Prefilling>(&request.state)) {
      memory_.Retire(std::move(prefilling->restore));
    }
    memory_.Retire(std::move(*sequence));
  }
}

// The reference is dead afterwards unless rows are in flight.
void Scheduler::Finish(Request& request, FinishReason reason) {
  LeaveState(request);
  if (deadlines_.Holds(request)) deadlines_.Remove(request);
  ReleaseFollowers(request);
  finished_.push_back({request.id, reason, request.prompt_tokens, request.cached_tokens.value_or(0),
                       request.length() - request.prompt_tokens, request.preemptions});
  request.state = Finished{};
  if (request.rows_in_flight == 0) requests_.erase(request.id);
}

void Scheduler::TakeFinished(std::vector<FinishedRequest>& finished) {
  finished.insert(finished.end(), finished_.begin(), finished_.end());
  finished_.clear();
}

std::span<const int32_t> Scheduler::Tokens(RequestId id) const {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return {};
  return found->second->tokens;
}

SchedulerStats Scheduler::stats() const {
  return {.waiting = waiting_count_,
          .running = std::ssize(running_),
          .steps = next_step_,
          .preemptions = preemptions_,
          .prefix_query_tokens = prefix_query_tokens_,
          .prefix_hit_tokens = prefix_hit_tokens_,
          .blocks = memory_.blocks().size(),
          .free_blocks = memory_.blocks().free(),
          .idle_blocks = memory_.blocks().retained(),
          .held_blocks = memory_.blocks().held(),
          .held_slots = memory_.slots().held(),
          .held_snapshots = memory_.snapshots().held()};
}

}  // namespace deepinfer::sched
