// Generates one sequence at a time: prefill in chunks, then one token a forward pass.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "deepinfer/result.h"
#include "engine/stats.h"
#include "exec/prefill.h"
#include "model/v41/model.h"
#include "sampling/sampler.h"

namespace deepinfer {

struct GenerationRequest {
  std::vector<int32_t> prompt;
  SamplingParams sampling;
  int64_t max_tokens = 512;
};

// All optional. Called on the thread that called Generate.
struct GenerationHooks {
  // Every token but the end-of-sentence token, as it is drawn. Returning false ends the sequence
  // with kStop after this token.
  std::function<bool(int32_t token)> on_token = {};
  // Prompt tokens done, after each chunk.
  ProgressFn prefill_progress = {};
  // May be set from any thread or a signal handler; looked at between forward passes.
  const std::atomic<bool>* cancel = nullptr;
};

struct Generation {
  std::vector<int32_t> tokens;  // what was drawn, the end-of-sentence token included
  FinishReason reason = FinishReason::kStop;
  GenerationStats stats;
  // Caches of the sequence at its end, as allocated.
  uint64_t global_kv_bytes = 0;
  uint64_t fixed_cache_bytes = 0;  // windows and compressor tails
};

// Errors: an empty prompt, a prompt that leaves no room in the context, a token id outside the
// vocabulary, max_tokens below 1, sampling parameters outside their ranges.
Status ValidateGenerationRequest(const GenerationRequest& request, const ModelConfig& config);

// Not thread-safe; any number of generators may share a model. The same request gives the same
// tokens whatever the chunk size, the number of threads or the requests before it.
class Generator {
 public:
  // `policy` has passed ValidatePrefillPolicy. Model and context must outlive the generator.
  Generator(const model::v41::Model& model, model::v41::ForwardContext& context,
            const PrefillPolicy& policy);

  // A cancelled generation is a result, not an error.
  Result<Generation> Generate(const GenerationRequest& request, const GenerationHooks& hooks = {});

 private:
  Status Prefill(const GenerationRequest& request, const GenerationHooks& hooks,
                 model::v41::SequenceState& state);
  Status Decode(const GenerationRequest& request, const GenerationHooks& hooks,
                model::v41::SequenceState& state, Generation& out);
  // The token at `position`, from the head's last output.
  Result<int32_t> NextToken(const SamplingParams& params, int64_t position);

  const model::v41::Model& model_;
  model::v41::ForwardContext& context_;
  PrefillPolicy policy_;
  Sampler sampler_;
  model::v41::HeadOutput head_;
};

}  // namespace deepinfer
