#include "sched/options.h"

#include <limits>

namespace deepinfer::sched {
namespace {

// Ids are 32 bits; lengths leave room for sums.
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max() - 1;
constexpr int64_t kMaxTokens = int64_t{1} << 40;

Status InRange(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return MakeError(ErrorCode::kInvalidArgument, "{} is {}, allowed are {} to {}", name, value,
                   least, most);
}

Status ValidatePrefixOptions(const SchedulerOptions& options) {
  DI_RETURN_IF_ERROR(InRange("min_hit_tokens", options.min_hit_tokens, 1, kMaxTokens));
  DI_RETURN_IF_ERROR(InRange("window_tokens", options.window_tokens, 0, kMaxTokens));
  DI_RETURN_IF_ERROR(InRange("keep_tokens", options.keep_tokens, 0, kMaxTokens));
  if (options.prefix_mode != cache::PrefixMode::kDeterministic) return {};
  DI_RETURN_IF_ERROR(InRange("snapshot_count", options.snapshot_count, 1, kMaxCount));
  DI_RETURN_IF_ERROR(
      InRange("snapshot_interval", options.snapshot_interval, options.block_tokens, kMaxTokens));
  if (options.snapshot_interval % options.block_tokens != 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "snapshot_interval is {}, allowed are multiples of block_tokens, {}",
                     options.snapshot_interval, options.block_tokens);
  }
  return {};
}

}  // namespace

Status ValidateSchedulerOptions(const SchedulerOptions& options) {
  DI_RETURN_IF_ERROR(InRange("block_count", options.block_count, 1, kMaxCount));
  DI_RETURN_IF_ERROR(InRange("block_tokens", options.block_tokens, 2, 1 << 20));
  if (options.block_tokens % 2 != 0) {
    return MakeError(ErrorCode::kInvalidArgument, "block_tokens is {}, allowed are even numbers",
                     options.block_tokens);
  }
  DI_RETURN_IF_ERROR(InRange("max_model_len", options.max_model_len, 2, kMaxTokens));
  DI_RETURN_IF_ERROR(InRange("max_num_seqs", options.max_num_seqs, 1, 1 << 20));
  DI_RETURN_IF_ERROR(InRange("max_draft_tokens", options.max_draft_tokens, 0, 1024));
  // Every running sequence may take its rows in every step, and prefill still has two blocks.
  const int64_t least_rows =
      options.max_num_seqs * (1 + options.max_draft_tokens) + 2 * options.block_tokens;
  if (options.max_batched_tokens < least_rows || options.max_batched_tokens > kMaxTokens) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "max_batched_tokens is {}, allowed are {} to {} (at least max_num_seqs {} x "
                     "(1 + max_draft_tokens {}) + 2 x block_tokens {})",
                     options.max_batched_tokens, least_rows, kMaxTokens, options.max_num_seqs,
                     options.max_draft_tokens, options.block_tokens);
  }
  DI_RETURN_IF_ERROR(
      InRange("watermark_blocks", options.watermark_blocks, 0, options.block_count - 1));
  DI_RETURN_IF_ERROR(InRange("steps_in_flight", options.steps_in_flight, 1, 2));
  DI_RETURN_IF_ERROR(InRange("priority_head_start (ns)", options.priority_head_start.count(), 0,
                             Time(std::chrono::hours(24)).count()));
  return ValidatePrefixOptions(options);
}

}  // namespace deepinfer::sched
