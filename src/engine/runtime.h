// One checkpoint, ready to run: weights, tokenizer and model, loaded once and shared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "config/model_config.h"
#include "config/options.h"
#include "engine/stats.h"
#include "loader/checkpoint.h"
#include "model/v41/model.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

struct RuntimeOptions {
  CheckWeights check_weights = CheckWeights::kAuto;
  // A target of kernels/cpu/cpu.h, "auto", or "reference".
  std::string cpu_target = "auto";
  Weights weights = Weights::kMap;
};

RuntimeOptions RuntimeOptionsOf(const Options& options);

// Immutable after Load and safe to use from several threads.
class Runtime {
 public:
  // Reads a checkpoint folder: config.json, weights and tokenizer.json. Errors name the file and
  // what is wrong in it, or the target that there is not.
  static Result<std::shared_ptr<const Runtime>> Load(const std::filesystem::path& folder,
                                                     const RuntimeOptions& options,
                                                     const ProgressFn& progress = {});

  const ModelConfig& config() const { return checkpoint_->config(); }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  // Name of the kernel table in use.
  std::string_view cpu_target() const { return cpu_target_; }
  const model::v41::Model& model() const { return *model_; }

  // What the shared parts hold: weights mapped, tokenizer, tables of the model.
  const std::vector<MemoryLine>& memory() const { return memory_; }

 private:
  Runtime(std::unique_ptr<Checkpoint> checkpoint, Tokenizer tokenizer)
      : checkpoint_(std::move(checkpoint)), tokenizer_(std::move(tokenizer)) {}

  std::unique_ptr<Checkpoint> checkpoint_;
  Tokenizer tokenizer_;
  std::string_view cpu_target_;
  std::unique_ptr<model::v41::Model> model_;
  std::vector<MemoryLine> memory_;
};

// The number of worker threads an option value stands for: 0 is DefaultThreads.
int ThreadCount(int64_t option);

// Where the workers of `threads` and `cpu_pinning` go. The calling thread is left as it is.
ThreadPoolOptions WorkerPlacement(const Options& options);

}  // namespace deepinfer
