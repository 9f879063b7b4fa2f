// A checkpoint folder: config.json and safetensors weights, mapped and checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/result.h"
#include "config/model_config.h"
#include "loader/tensor_contract.h"
#include "loader/weight_check.h"
#include "tensor/tensor_view.h"

namespace deepinfer {

// How weights get into memory.
enum class WeightsMemory {
  kMap,   // files are mapped: starts at once, pages load on first touch
  kLoad,  // files are read into huge pages: MappedFile::Load
};

struct CheckpointOptions {
  WeightCheck weight_check = WeightCheck::kAuto;
  WeightsMemory weights_memory = WeightsMemory::kMap;
};

// Immutable; views point into the mapped files and live as long as the object. Thread-safe.
class Checkpoint final : public TensorSource {
 public:
  // Reads `dir`/config.json and either model.safetensors or the shards that
  // model.safetensors.index.json names, then checks the tensor contract and the weights' values.
  // Mapped weights load on first touch, Engram tables without read-ahead.
  static Result<std::unique_ptr<Checkpoint>> Open(const std::filesystem::path& dir,
                                                  const CheckpointOptions& options = {},
                                                  const ProgressFn& progress = {});

  const std::filesystem::path& dir() const { return dir_; }
  const ModelConfig& config() const { return config_; }

  const TensorView* Find(std::string_view name) const override;
  // Sorted by name. Includes tensors that the engine ignores.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  // Bytes of all tensors, without headers.
  uint64_t total_bytes() const { return total_bytes_; }
  size_t num_shards() const { return shards_.size(); }
  // Tensors present but not read by this engine (vision tower, draft copies of embed and head).
  int64_t num_ignored() const { return num_ignored_; }

 private:
  Checkpoint() = default;
  Status OpenShards(WeightsMemory memory, const ProgressFn& progress);
  Status AddShard(const std::string& file_name, MappedFile file);
  Result<MappedFile> LoadShard(const std::string& file_name, uint64_t done, uint64_t total,
                               const ProgressFn& progress) const;

  std::filesystem::path dir_;
  ModelConfig config_;
  std::vector<MappedFile> shards_;
  std::vector<StoredTensor> tensors_;
  uint64_t total_bytes_ = 0;
  int64_t num_ignored_ = 0;
};

}  // namespace deepinfer
