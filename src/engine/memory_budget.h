// What an engine's memory is for, decided before any of it is used. Source: product section 4.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/prefix_match.h"
#include "engine/runtime.h"
#include "engine/stats.h"
#include "model/v41/cache_layout.h"

namespace deepinfer {

struct MemoryLimits {
  int64_t max_model_len = 0;  // 0: the checkpoint's context, or as much as the blocks hold
  int64_t max_num_seqs = 64;  // sequences that run at once
  int64_t block_tokens = 64;  // even
  // Of KV blocks and, in deterministic mode, snapshots. 0: what memory_fraction leaves for them, at
  // most what max_num_seqs sequences of full length need.
  int64_t kv_cache_bytes = 0;
  // Of the memory that is available to the process now, for everything the engine reserves.
  double memory_fraction = 0.8;
  int64_t grammar_cache_bytes = int64_t{256} << 20;
  // Deterministic prefix cache: bytes of kv_cache_bytes for snapshots (0: a quarter), and tokens
  // between the snapshots of a long prompt, whole blocks.
  int64_t snapshot_bytes = 0;
  int64_t snapshot_interval = 1024;
};

struct MemoryBudget {
  std::vector<MemoryLine> lines;  // what the engine reserves
  std::vector<MemoryLine> held;   // what the loaded checkpoint holds already, or maps
  uint64_t available_bytes = 0;   // to the process, when it was asked
  int64_t max_model_len = 0;
  int64_t block_count = 0;
  int64_t slot_count = 0;
  int64_t snapshot_count = 0;
  // Rows whose logits a forward may write at once.
  int64_t logits_rows = 0;

  uint64_t total_bytes() const;  // of `lines`
};

struct MemoryDemand {
  MemoryLimits limits;
  cache::PrefixMode prefix_mode = cache::PrefixMode::kOff;
  int64_t max_num_batched_tokens = 0;
  int64_t max_draft_tokens = 0;
  uint64_t available_bytes = 0;
};

// Upper bound of a forward's scratch memory.
uint64_t WorkspaceBytes(const ModelConfig& config, int64_t rows, int64_t max_model_len);

// Errors: what does not fit, with the table's lines; limits outside their ranges.
Result<MemoryBudget> PlanMemory(const Runtime& runtime, const model::v41::CacheLayout& layout,
                                const MemoryDemand& demand);

// The table, for people.
std::string FormatMemory(const MemoryBudget& budget);

}  // namespace deepinfer
