// What `deepinfer inspect` shows of a checkpoint: architecture, layers, tensors and bytes.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "config/model_config.h"
#include "loader/tensor_contract.h"

namespace deepinfer {

enum class TensorKind : uint8_t {
  kEmbedding,
  kHead,
  kAttention,
  kCompressor,
  kIndexer,
  kGate,
  kRoutedExperts,
  kSharedExperts,
  kHyperConnections,  // mHC
  kEngramTable,
  kEngram,  // projections and gate weights beside the tables
  kNorm,
  kDraft,  // everything of the draft stages
  kVision,
  kOther,
};
inline constexpr size_t kNumTensorKinds = static_cast<size_t>(TensorKind::kOther) + 1;

TensorKind KindOfTensor(std::string_view name);
// "routed experts"
std::string_view KindName(TensorKind kind);

struct TensorRow {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;
  int64_t bytes = 0;
  TensorKind kind = TensorKind::kOther;
};

struct KindTotal {
  int64_t tensors = 0;
  int64_t bytes = 0;
};

// Weight bytes that one token of generation reads.
struct ActiveBytes {
  int64_t dense = 0;           // all of the trunk but experts, tables and the embedding
  int64_t routed_experts = 0;  // of the experts chosen for one token, all layers
  int64_t embedding_row = 0;
  int64_t engram_rows = 0;  // of all tables
  int64_t draft = 0;        // the draft stages with their chosen experts, once a drafted block
  int64_t token() const { return dense + routed_experts + embedding_row + engram_rows; }
};

// Global KV of one source layer.
struct KvSourceRow {
  int layer = 0;
  int ratio = 1;  // tokens an entry
  int64_t kv_entry_bytes = 0;
  int64_t index_entry_bytes = 0;
  double bytes_per_token() const {
    return static_cast<double>(kv_entry_bytes + index_entry_bytes) / ratio;
  }
};

struct CheckpointReport {
  ModelConfig config;
  std::string folder;
  // False: no weight files were there, and the tensors are those that the configuration asks for.
  bool has_weights = false;
  size_t num_shards = 0;
  std::vector<TensorRow> tensors;
  std::array<KindTotal, kNumTensorKinds> kinds{};  // by TensorKind
  KindTotal total;
  ActiveBytes active;
  std::vector<KvSourceRow> kv_sources;
  double kv_bytes_per_token = 0;
  int64_t window_bytes_per_sequence = 0;  // of the trunk's layers, at a full window
  int64_t draft_window_bytes_per_sequence = 0;
  std::vector<std::string> notes;  // what the numbers leave out

  const KindTotal& of(TensorKind kind) const { return kinds[static_cast<size_t>(kind)]; }
};

// With no tensors, reports on those that the configuration asks for.
CheckpointReport BuildCheckpointReport(const ModelConfig& config,
                                       std::span<const StoredTensor> tensors);

// Reads a folder: with weight files these are opened and held to the tensor contract (their values
// are not read), without any only config.json is.
Result<CheckpointReport> InspectCheckpoint(const std::filesystem::path& folder,
                                           const ProgressFn& progress);

// For people. Without all_tensors the tensor table is left out.
std::string ReportText(const CheckpointReport& report, bool all_tensors);

// One JSON object, indented; the tensor table is always in it.
std::string ReportJson(const CheckpointReport& report);

}  // namespace deepinfer
