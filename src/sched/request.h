// A request and its states. Each state owns what a request in it needs; a request changes state by
// handing that on, so it cannot be freed twice or used after the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "cache/block_table.h"
#include "cache/hash_chain.h"
#include "cache/pools.h"
#include "sched/options.h"
#include "sched/plan.h"

namespace deepinfer::sched {

inline constexpr int32_t kMaxPriority = 1000;

struct NewRequest {
  RequestId id = 0;
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 1;
  int32_t priority =
      0;  // within +-kMaxPriority; higher goes first, see SchedulerOptions::priority_head_start
  std::optional<Time> deadline;
  std::string cache_salt;  // requests of different salts share no cached blocks
  // Every prompt position's logits are wanted, so none may come from the prefix cache.
  bool prompt_logprobs = false;
  // Another request with the same prompt (n > 1): this one waits until that one's prompt is
  // computed, to find it in the prefix cache.
  std::optional<RequestId> shares_prompt_with;
};

struct FinishedRequest {
  RequestId id = 0;
  FinishReason reason = FinishReason::kStop;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, served by the prefix cache at its first admission
  int64_t output_tokens = 0;
  int64_t preemptions = 0;
};

struct Request;

// What a running sequence owns.
struct Sequence {
  cache::SlotRef slot;
  cache::BlockTable blocks;
  int64_t cached_blocks = 0;  // leading blocks that the prefix index knows
  int64_t told_blocks = 0;    // leading blocks that plans have named
  int64_t confirmed = 0;      // leading positions whose results are back
  int64_t replay_start = 0;
  int64_t write_floor = 0;
};

// Until the prompt of another request is computed.
struct AwaitingPrompt {
  Request* source = nullptr;
};

// In the queue: new, or preempted with tokens generated already.
struct Waiting {};

struct Prefilling {
  Sequence sequence;
  int64_t position = 0;  // first position that no plan contains yet
  int64_t end = 0;       // tokens known at admission
  int64_t branch = 0;    // where the cached blocks end that a request before computed
  cache::SnapshotRef restore;
  bool first = true;
};

// A token after the known ones is planned, computed or in flight.
struct Decoding {
  Sequence sequence;
  // Tokens that steps in flight will yield: one a step for certain, more with accepted drafts.
  int64_t pending_min = 0;
  int64_t pending_max = 0;
};

// Kept only while rows are in flight, whose results are dropped.
struct Finished {};

using RequestState = std::variant<AwaitingPrompt, Waiting, Prefilling, Decoding, Finished>;

// The order in which requests are served: by arrival, moved ahead by priority. It never changes, so
// a request is overtaken by those alone that arrive within its rival's head start.
struct ServiceOrder {
  Time virtual_arrival{};
  uint64_t sequence = 0;
  friend bool operator<(const ServiceOrder& a, const ServiceOrder& b) {
    return std::tie(a.virtual_arrival, a.sequence) < std::tie(b.virtual_arrival, b.sequence);
  }
};

struct Request {
  RequestId id = 0;
  std::vector<int32_t> tokens;  // prompt and confirmed output
  int64_t prompt_tokens = 0;
  int64_t max_length = 0;  // tokens at which it ends
  ServiceOrder order;
  Time deadline = Time::max();
  bool prompt_logprobs = false;
  int64_t draft_tokens = 0;

  cache::Hash128 hash_root;
  std::vector<cache::Hash128> chain;  // hashes of the full blocks of `tokens`, as far as needed
  std::vector<Request*> followers;    // those that await this one's prompt
  int64_t rows_in_flight = 0;
  std::optional<int64_t> cached_tokens;  // set at the first admission
  int64_t preemptions = 0;
  int64_t queue_place = -1;
  int64_t deadline_place = -1;
  RequestState state = Waiting{};

  int64_t length() const { return std::ssize(tokens); }
};

// Null unless the request runs.
inline Sequence* RunningSequence(Request& request) {
  if (auto* prefilling = std::get_if<Prefilling>(&request.state)) return &prefilling->sequence;
  if (auto* decoding = std::get_if<Decoding>(&request.state)) return &decoding->sequence;
  return nullptr;
}

// The last chunk of the prompt is planned; its token is the first that is pending.
inline Decoding BeginDecoding(Prefilling&& prefilling) {
  return {std::move(prefilling.sequence), 1, 1};
}

}  // namespace deepinfer::sched
