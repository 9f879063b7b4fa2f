// What the scheduler asks of the executor, and what the executor tells it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/pools.h"

namespace deepinfer::sched {

// Chosen by the caller, unique among the requests that are not finished.
using RequestId = uint64_t;

enum class Logits {
  kNone,  // a chunk before the prompt's last
  kLast,  // of the last row
  kAll,
};

// The consecutive positions of one sequence that a step computes.
struct PlanRow {
  RequestId request = 0;
  cache::SlotId slot = cache::kNoSlot;
  // Positions [start, start + count). With drafts in flight the true start may lie up to
  // start_slack further, when more of them are accepted than the one token that is certain; the
  // device knows it. There are blocks for that case too.
  int64_t start = 0;
  int64_t start_slack = 0;
  int64_t count = 0;
  // The last draft_count rows are drafts. Nothing is computed at or beyond max_length - 1, the
  // place of the last token: where the true start is further on than `start`, the executor drops
  // drafts, or, when accepted drafts have ended the request, the whole row (its result is not
  // looked at).
  int64_t draft_count = 0;
  int64_t max_length = 0;  // tokens at which the request ends
  // Tokens from `start` on as far as the scheduler knows them. Others were sampled by a step that
  // is still in flight, or are drafts.
  std::span<const int32_t> tokens;
  // The sequence from its first token on, as far as the scheduler knows it.
  std::span<const int32_t> known;
  // Of the prompt as it came; a resumed request's generated tokens lie beyond it. Where the decoder
  // half starts in compact prefill follows from it alone.
  int64_t prompt_tokens = 0;

  // The sequence's block table from entry first_new_block on is StepPlan::NewBlocks(row); the
  // entries before are those of earlier plans.
  int64_t first_new_block = 0;
  int64_t new_blocks_begin = 0;
  int64_t new_blocks_count = 0;

  // The slot is new to this sequence: its content must be cleared, or restored from `restore`.
  bool first = false;
  cache::SnapshotId restore = cache::kNoSnapshot;
  // Where the slot's content after the last of these rows must be copied to.
  cache::SnapshotId save = cache::kNoSnapshot;
  // Window attention reads nothing before replay_start; rows before write_floor write no global KV,
  // whose blocks are shared (spec model-v41 section 5.3). Both 0 but after a kFast hit.
  int64_t replay_start = 0;
  int64_t write_floor = 0;

  Logits logits = Logits::kNone;
  // A token is sampled after the last row (with drafts: one or more are accepted).
  bool samples = false;
};

// Valid until its step is advanced.
struct StepPlan {
  int64_t step = -1;  // -1: there is nothing to run, and nothing to advance
  std::vector<PlanRow> rows;
  int64_t token_count = 0;  // of all rows together
  std::vector<cache::BlockId> block_ids;

  bool empty() const { return rows.empty(); }
  std::span<const cache::BlockId> NewBlocks(const PlanRow& row) const {
    return std::span(block_ids).subspan(row.new_blocks_begin, row.new_blocks_count);
  }
};

enum class FinishReason {
  kStop,       // an end token or a stop condition, as the executor says
  kLength,     // max_new_tokens
  kCancelled,  // Cancel()
  kDeadline,   // its deadline passed
  kFailed,     // the executor could not go on with it
};

struct RowResult {
  RequestId request = 0;
  // Of a row that samples: 1 to 1 + draft_count tokens, or none when `finish` is set. Else empty.
  std::span<const int32_t> tokens;
  // Set when the request ends after `tokens`.
  std::optional<FinishReason> finish;
};

// Results of all rows of a plan, in its order. Those of requests that are finished by now may say
// anything.
struct StepResult {
  int64_t step = -1;
  std::span<const RowResult> rows;
};

}  // namespace deepinfer::sched
