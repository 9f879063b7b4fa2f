// Writes safetensors shards and their index, piece by piece.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "loader/random_weights.h"
#include "loader/tensor_contract.h"

namespace deepinfer {

// Bytes of a tensor's contents.
uint64_t TensorBytes(const ExpectedTensor& tensor);

// Which tensors go into which file, in order. One file "model.safetensors" when everything fits
// into shard_bytes, else "model-00001-of-000NN.safetensors" files that end before they exceed it
// (a single larger tensor gets a file of its own). A weight and its scale stay together.
struct ShardPlan {
  std::string file_name;
  size_t first = 0;  // index of the first tensor
  size_t count = 0;
};
std::vector<ShardPlan> PlanShards(std::span<const ExpectedTensor> tensors, uint64_t shard_bytes);

// Writes one file: header, then the contents of each tensor of `tensors` from random weights, with
// buffers of 16 MiB. `done` counts tensor bytes and is advanced. Synced before it returns.
// kResourceExhausted on a full disk; kCancelled soon after `cancelled` (may be null) becomes true.
Status WriteRandomShard(const std::filesystem::path& path, std::span<const ExpectedTensor> tensors,
                        uint64_t seed, ThreadPool& pool, const std::atomic<bool>* cancelled,
                        uint64_t& done, uint64_t total, const ProgressFn& progress);

// The text of model.safetensors.index.json.
std::string ShardIndex(std::span<const ExpectedTensor> tensors, std::span<const ShardPlan> shards);

}  // namespace deepinfer
