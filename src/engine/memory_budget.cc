#include "engine/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cache/pools.h"

namespace deepinfer {
namespace {

// Of the KV cache's bytes, for snapshots.
constexpr int64_t kSnapshotShare = 4;
// Floats of the indexer's scores, whatever the batch (model/v41/indexer.cc).
constexpr int64_t kIndexScores = int64_t{1} << 18;

uint64_t Sum(const std::vector<MemoryLine>& lines) {
  return std::accumulate(lines.begin(), lines.end(), uint64_t{0},
                         [](uint64_t sum, const MemoryLine& line) { return sum + line.bytes; });
}

std::string Table(const std::vector<MemoryLine>& lines) {
  std::string text;
  for (const MemoryLine& line : lines) {
    text += fmt::format("  {:<36} {:>14} B  {:9.2f} MiB\n", line.name, line.bytes,
                        static_cast<double>(line.bytes) / (1 << 20));
  }
  return text;
}

Status CheckLimits(const MemoryLimits& limits, const ModelConfig& config) {
  if (limits.max_model_len != 0 &&
      (limits.max_model_len < 2 || limits.max_model_len > config.max_position_embeddings)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "max-model-len {} is outside 2 to {}, the checkpoint's context",
                     limits.max_model_len, config.max_position_embeddings);
  }
  if (limits.max_num_seqs < 1) {
    return MakeError(ErrorCode::kInvalidArgument, "max-num-seqs {} is below 1",
                     limits.max_num_seqs);
  }
  if (limits.snapshot_interval < limits.block_tokens ||
      limits.snapshot_interval % limits.block_tokens != 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "prefix-snapshot-interval {} is no multiple of block-size {}",
                     limits.snapshot_interval, limits.block_tokens);
  }
  return {};
}

}  // namespace

uint64_t WorkspaceBytes(const ModelConfig& config, int64_t rows, int64_t max_model_len) {
  const int64_t hidden = config.hidden_size, streams = config.hc_mult;
  const int64_t experts = config.experts_per_token, inner = config.moe_intermediate_size;
  const int64_t attention = config.num_heads * config.head_dim;
  int64_t row = 2 * streams * hidden + 12 * hidden;         // streams, sublayer inputs and outputs
  row += 4 * attention + 6 * config.q_lora_rank;            // queries, their latents
  row += 4 * config.o_groups * config.o_lora_rank;          // attention's latents
  row += (experts + 1) * inner * 6 + experts * hidden * 2;  // experts
  row += config.num_experts * 8 + experts * 32;             // router
  row += 20 * config.head_dim + config.window_entry_bytes();  // compressor, windows
  row += 2 * config.index_heads * (config.index_head_dim + 1) + 4 * config.index_topk;
  row += 4 * config.candidate_topk_blocks + 4 * config.rope_dim + 256;
  if (!config.engram_layers.empty()) {
    row += config.engram_columns() * (3 * config.engram_head_dim + 8) + 2 * (streams + 1) * hidden;
  }
  return static_cast<uint64_t>(rows * row + 4 * (kIndexScores + max_model_len));
}

uint64_t MemoryBudget::total_bytes() const { return Sum(lines); }

Result<MemoryBudget> PlanMemory(const Runtime& runtime, const model::v41::CacheLayout& layout,
                                const MemoryDemand& demand) {
  const ModelConfig& config = runtime.config();
  const MemoryLimits& limits = demand.limits;
  DI_RETURN_IF_ERROR(CheckLimits(limits, config));
  MemoryBudget budget;
  budget.available_bytes = demand.available_bytes;
  budget.held = runtime.memory();
  const int64_t wanted_len =
      limits.max_model_len > 0 ? limits.max_model_len : config.max_position_embeddings;
  budget.slot_count = limits.max_num_seqs;
  budget.logits_rows = limits.max_num_seqs * (1 + demand.max_draft_tokens);
  const auto vocab_row = static_cast<uint64_t>(config.vocab_size) * sizeof(float);
  budget.lines = {
      {"windows and tails of sequences",
       static_cast<uint64_t>(budget.slot_count * layout.slot_bytes)},
      {"workspace of a forward", WorkspaceBytes(config, demand.max_num_batched_tokens, wanted_len)},
      {"logits", static_cast<uint64_t>(budget.logits_rows) * vocab_row},
      {"grammars", static_cast<uint64_t>(limits.grammar_cache_bytes)}};
  if (demand.max_draft_tokens > 0) {
    budget.lines.push_back(
        {"logits of drafts", static_cast<uint64_t>(budget.logits_rows) * vocab_row});
  }

  const auto usable =
      static_cast<uint64_t>(limits.memory_fraction * static_cast<double>(demand.available_bytes));
  const uint64_t others = budget.total_bytes();
  const bool with_snapshots = demand.prefix_mode == cache::PrefixMode::kDeterministic;
  const int64_t full = cache::BlocksFor(wanted_len, limits.block_tokens) * limits.max_num_seqs;
  auto cache_bytes = static_cast<uint64_t>(limits.kv_cache_bytes);
  if (limits.kv_cache_bytes == 0) {
    uint64_t most = static_cast<uint64_t>(full) * static_cast<uint64_t>(layout.block_bytes);
    if (with_snapshots) most += most / (kSnapshotShare - 1);
    cache_bytes = std::min(most, usable - std::min(usable, others));
  }
  uint64_t snapshot_bytes = with_snapshots ? cache_bytes / kSnapshotShare : 0;
  if (with_snapshots && limits.snapshot_bytes > 0) {
    snapshot_bytes = std::min(cache_bytes, static_cast<uint64_t>(limits.snapshot_bytes));
  }
  budget.snapshot_count = static_cast<int64_t>(snapshot_bytes) / layout.slot_bytes;
  snapshot_bytes = static_cast<uint64_t>(budget.snapshot_count * layout.slot_bytes);
  budget.block_count = static_cast<int64_t>(cache_bytes - snapshot_bytes) / layout.block_bytes;
  budget.lines.push_back(
      {fmt::format("KV cache, {} blocks of {} tokens", budget.block_count, limits.block_tokens),
       static_cast<uint64_t>(budget.block_count * layout.block_bytes)});
  if (with_snapshots) {
    budget.lines.push_back(
        {fmt::format("{} snapshots of windows", budget.snapshot_count), snapshot_bytes});
  }
  const int64_t capacity = budget.block_count * limits.block_tokens;
  budget.max_model_len =
      limits.max_model_len > 0 ? limits.max_model_len : std::min(wanted_len, capacity);
  if (budget.total_bytes() > usable || capacity < 2 || budget.max_model_len > capacity ||
      (with_snapshots && budget.snapshot_count < 1)) {
    return MakeError(
        ErrorCode::kResourceExhausted,
        "the engine's memory does not fit: {} B are available, memory-fraction {} of them may be "
        "used, a sequence of max-model-len {} needs {} blocks{}\n{}  {:<36} {:>14} B",
        demand.available_bytes, limits.memory_fraction,
        limits.max_model_len > 0 ? limits.max_model_len : 2,
        cache::BlocksFor(std::max<int64_t>(limits.max_model_len, 2), limits.block_tokens),
        with_snapshots ? " and one snapshot" : "", Table(budget.lines), "together",
        budget.total_bytes());
  }
  return budget;
}

std::string FormatMemory(const MemoryBudget& budget) {
  return fmt::format(
      "the checkpoint holds\n{}the engine reserves, as it is used\n{}  {:<36} {:>14} B  {:9.2f} "
      "MiB\n{} B were available; a sequence has at most {} tokens\n",
      Table(budget.held), Table(budget.lines), "together", budget.total_bytes(),
      static_cast<double>(budget.total_bytes()) / (1 << 20), budget.available_bytes,
      budget.max_model_len);
}

}  // namespace deepinfer
