// Serves many requests on one checkpoint: owns the scheduler, the executor and the threads between
// them. Source: spec algorithms sections 2 and 10.1. See docs/engine.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "cache/eviction_policy.h"
#include "cache/prefix_match.h"
#include "config/options.h"
#include "deepinfer/request.h"
#include "deepinfer/sampling_params.h"
#include "deepinfer/stats.h"
#include "engine/memory_budget.h"
#include "engine/request_stream.h"
#include "engine/runtime.h"
#include "exec/prefill.h"
#include "sampling/logprobs.h"

namespace deepinfer {

struct EngineSettings {
  PrefillPolicy prefill;
  int threads = 1;  // of the model's forward
  ThreadPoolOptions placement = {};
  MemoryLimits memory = {};
  int64_t max_num_batched_tokens = 2048;
  cache::PrefixMode prefix_mode = cache::PrefixMode::kDeterministic;
  cache::EvictionKind eviction = cache::EvictionKind::kS3Fifo;
  // Hits below are computed instead.
  int64_t min_hit_tokens = 256;
  bool async_scheduling = true;
  // Drafts of a decoding sequence in a step: at most the checkpoint's draft block.
  int64_t draft_tokens = 0;
  LogprobsMode logprobs_mode = LogprobsMode::kRaw;
  // For tests: sees, and may change, what each forward computes. Outlives the engine.
  model::v41::ForwardProbe* probe = nullptr;
};

// The settings that option values mean.
EngineSettings EngineSettingsOf(const Options& options);

struct EngineRequest {
  std::vector<int32_t> prompt;
  SamplingParams sampling;
  RequestOptions options;
};

// Thread-safe.
class Engine {
 public:
  // Errors: settings outside their ranges, memory that does not fit (with the table's numbers),
  // threads that the system refuses.
  static Result<std::unique_ptr<Engine>> Create(std::shared_ptr<const Runtime> runtime,
                                                const EngineSettings& settings);
  // Requests in flight end with FinishReason::kCancelled; callbacks that were due are called.
  ~Engine();

  // What Submit would refuse.
  Status Check(const EngineRequest& request) const;
  // Returns at once; the stream tells how the request goes on. Errors, each naming the field, its
  // value and what is allowed: parameters, token ids, a prompt that leaves no room in the context,
  // a request that needs more blocks than there are.
  Result<std::shared_ptr<RequestStream>> Submit(EngineRequest request);

  const Runtime& runtime() const;
  EngineStats stats() const;
  // Text format of Prometheus.
  std::string MetricsText() const;
  const MemoryBudget& memory() const;
  // What of it was touched so far: KV blocks and slots, scratch memory.
  std::vector<MemoryLine> MemoryInUse() const;
  int64_t max_model_len() const;
  // Everything that requests held is given back: no block, slot or snapshot is in use. For tests,
  // while no request runs. The error says what is held.
  Status CheckBalance() const;

 private:
  class Core;
  explicit Engine(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace deepinfer
