// What a scheduler has to share out, and its limits.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/result.h"
#include "cache/eviction_policy.h"
#include "cache/prefix_match.h"

namespace deepinfer::sched {

// Time since any fixed point; the scheduler has no clock of its own.
using Time = std::chrono::nanoseconds;

struct SchedulerOptions {
  int64_t block_count = 0;
  int64_t block_tokens = 64;          // even
  int64_t max_model_len = 0;          // tokens of prompt and output together
  int64_t max_num_seqs = 64;          // sequences that run at once = slots
  int64_t max_batched_tokens = 2048;  // rows of a step
  int64_t max_draft_tokens = 0;       // most draft rows of a sequence in a step
  // Blocks that stay available when a request is admitted beside others, so that running ones can
  // grow a while before one must be preempted.
  int64_t watermark_blocks = 0;
  // 2: a step may be planned while the one before it runs (asynchronous scheduling). 1: it may not.
  int64_t steps_in_flight = 2;
  // One level of priority counts like having arrived this much earlier.
  Time priority_head_start = std::chrono::seconds(10);

  cache::PrefixMode prefix_mode = cache::PrefixMode::kOff;
  cache::EvictionKind eviction = cache::EvictionKind::kLru;
  int64_t min_hit_tokens = 256;
  int64_t window_tokens = 128;       // of the model's sliding window
  int64_t keep_tokens = 0;           // cache::MatchRules::keep_tokens
  int64_t snapshot_count = 0;        // kDeterministic: snapshots that fit the memory for them
  int64_t snapshot_interval = 2048;  // kDeterministic: tokens between snapshots of a long sequence
};

// Errors name the field, its value and the allowed range.
Status ValidateSchedulerOptions(const SchedulerOptions& options);

}  // namespace deepinfer::sched
