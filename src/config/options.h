// Everything a user can set, typed and inside its allowed range. Filled by config/option_parser.h
// from the table in config/option_table.h; a field is named like its option, with '_' for '-'.
#pragma once

#include <cstdint>
#include <string>

namespace deepinfer {

// How much of a prompt the decoder half runs (spec model-v41 section 5).
enum class PrefillMode {
  kOff,      // every layer on every token: exact
  kCompact,  // bounded replay: only the last prefill_keep_tokens tokens
};

// Which weights are read and checked for NaN and infinity when a checkpoint is loaded.
enum class CheckWeights {
  kAuto,  // all up to 1 GiB; above, all but routed experts and Engram tables
  kAll,
  kNone,
};

// Whether worker threads are bound to memory nodes (base/topology.h).
enum class CpuPinning {
  kAuto,  // where it cannot hurt: WorkerCpus
  kOff,
};

// How weights get into memory (loader/checkpoint.h).
enum class Weights { kMap, kLoad };

// What the prefix cache may serve (docs/scheduler.md, "The prefix cache").
enum class PrefixCaching { kOff, kFast, kDeterministic };
enum class PrefixEviction { kLru, kS3Fifo };

// Which logits log-probabilities are of (docs/sampling.md).
enum class LogprobsOption { kRaw, kProcessed };

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// The initial values are the table's defaults.
struct Options {
  std::string model;    // empty: the caller searches the default places
  int64_t threads = 0;  // 0: DefaultThreads
  CpuPinning cpu_pinning = CpuPinning::kAuto;
  std::string cpu_target = "auto";  // a name of kernels::cpu::Targets, or "reference"
  LogLevel log_level = LogLevel::kWarning;
  CheckWeights check_weights = CheckWeights::kAuto;
  Weights weights = Weights::kMap;

  PrefillMode prefill_mode = PrefillMode::kOff;
  int64_t prefill_keep_tokens = 140;  // the lower bound depends on the model's window

  int64_t max_model_len = 0;  // 0: the checkpoint's context, or what the KV cache holds
  int64_t max_num_seqs = 64;
  int64_t max_num_batched_tokens = 2048;
  int64_t block_size = 64;
  int64_t kv_cache_bytes = 0;  // 0: memory_fraction decides
  double memory_fraction = 0.8;
  PrefixCaching prefix_caching = PrefixCaching::kDeterministic;
  PrefixEviction prefix_eviction = PrefixEviction::kS3Fifo;
  int64_t prefix_snapshot_interval = 1024;
  int64_t async_scheduling = 1;
  int64_t use_nextn_decode = 0;  // the upper bound depends on the checkpoint's draft block
  int64_t grammar_cache_bytes = int64_t{128} << 20;
  LogprobsOption logprobs_mode = LogprobsOption::kRaw;

  int64_t max_tokens = 512;
  double temperature = 0;  // 0: greedy
  double top_p = 1;
  int64_t top_k = 0;  // 0: no limit
  double min_p = 0;
  int64_t seed = 0;
};

}  // namespace deepinfer
