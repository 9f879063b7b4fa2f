// One checkpoint, ready to run: weights, tokenizer and model, loaded once and shared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "config/model_config.h"
#include "config/options.h"
#include "engine/stats.h"
#include "loader/checkpoint.h"
#include "model/v41/model.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

// Immutable after Load and safe to use from several threads.
class Runtime {
 public:
  // Reads a checkpoint folder: config.json, weights and tokenizer.json. Errors name the file and
  // what is wrong in it.
  static Result<std::shared_ptr<const Runtime>> Load(const std::filesystem::path& folder,
                                                     CheckWeights check_weights,
                                                     const ProgressFn& progress = {});

  const ModelConfig& config() const { return checkpoint_->config(); }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const model::v41::Model& model() const { return *model_; }

  // What the shared parts hold: weights mapped, tokenizer, tables of the model.
  const std::vector<MemoryLine>& memory() const { return memory_; }

 private:
  Runtime(std::unique_ptr<Checkpoint> checkpoint, Tokenizer tokenizer)
      : checkpoint_(std::move(checkpoint)), tokenizer_(std::move(tokenizer)) {}

  std::unique_ptr<Checkpoint> checkpoint_;
  Tokenizer tokenizer_;
  std::unique_ptr<model::v41::Model> model_;
  std::vector<MemoryLine> memory_;
};

// The number of worker threads an option value stands for: 0 is one a core.
int ThreadCount(int64_t option);

}  // namespace deepinfer
