#include "loader/checkpoint_report.h"

#include <system_error>

#include "base/file.h"
#include "loader/checkpoint.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = size_t{16} << 20;

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

ActiveBytes CountActive(const CheckpointReport& report) {
  const ModelConfig& config = report.config;
  ActiveBytes active;
  int64_t draft_experts = 0;
  for (const TensorRow& tensor : report.tensors) {
    switch (tensor.kind) {
      case TensorKind::kEmbedding:
        active.embedding_row = tensor.bytes / config.vocab_size;
        break;
      case TensorKind::kRoutedExperts:
        active.routed_experts += tensor.bytes;
        break;
      case TensorKind::kEngramTable:
        active.engram_rows += tensor.bytes / tensor.shape[0] * config.engram_columns();
        break;
      case TensorKind::kDraft:
        if (IsRoutedExpert(tensor.name)) {
          draft_experts += tensor.bytes;
        } else if (!Contains(tensor.name, ".markov_head.embed.") &&
                   !IsIgnoredTensor(config, tensor.name)) {
          active.draft += tensor.bytes;
        }
        break;
      case TensorKind::kVision:
      case TensorKind::kOther:
        break;
      default:
        active.dense += tensor.bytes;
    }
  }
  // Experts of a layer are equal in size.
  active.routed_experts = active.routed_experts / config.num_experts * config.experts_per_token;
  if (config.num_draft_stages > 0) {
    active.draft += draft_experts / config.draft_num_experts * config.draft_experts_per_token;
    active.draft += report.of(TensorKind::kHead).bytes;
  }
  return active;
}

void AddKv(CheckpointReport& report) {
  const ModelConfig& config = report.config;
  for (const int layer : config.kv_source_layers) {
    report.kv_sources.push_back({layer, config.compress_ratios[layer], config.kv_entry_bytes(),
                                 config.index_entry_bytes()});
    report.kv_bytes_per_token += report.kv_sources.back().bytes_per_token();
  }
  const int64_t window = config.sliding_window * config.window_entry_bytes();
  report.window_bytes_per_sequence = config.num_layers * window;
  report.draft_window_bytes_per_sequence = config.num_draft_stages * window;
}

void AddNotes(CheckpointReport& report) {
  if (!report.has_weights) {
    report.notes.push_back(
        "no weight files: tensors and bytes are those that config.json asks for");
  }
  if (report.config.has_vision && report.of(TensorKind::kVision).tensors == 0) {
    report.notes.push_back(
        "config.json has a vision tower; its tensors are not counted, and this engine does not run "
        "it");
  } else if (report.config.has_vision) {
    report.notes.push_back(
        "the vision tower's tensors are counted, but this engine does not run it");
  }
  if (report.config.num_draft_stages > 0) {
    report.notes.push_back(
        "active bytes of the draft are read once a drafted block and include the shared head");
  }
}

}  // namespace

TensorKind KindOfTensor(std::string_view name) {
  if (name.starts_with("mtp.")) return TensorKind::kDraft;
  if (name.starts_with("vision.") || name.starts_with("aligner.") || name.starts_with("image_")) {
    return TensorKind::kVision;
  }
  if (name == "embed.weight") return TensorKind::kEmbedding;
  if (name == "head.weight") return TensorKind::kHead;
  if (IsEngramTable(name)) return TensorKind::kEngramTable;
  if (Contains(name, ".engram.")) return TensorKind::kEngram;
  if (IsRoutedExpert(name)) return TensorKind::kRoutedExperts;
  if (Contains(name, ".ffn.shared_experts.")) return TensorKind::kSharedExperts;
  if (Contains(name, ".ffn.gate.")) return TensorKind::kGate;
  if (Contains(name, ".hc_attn_") || Contains(name, ".hc_ffn_")) {
    return TensorKind::kHyperConnections;
  }
  if (name.ends_with("norm.weight")) return TensorKind::kNorm;
  if (Contains(name, ".compressor.")) return TensorKind::kCompressor;
  if (Contains(name, ".indexer.")) return TensorKind::kIndexer;
  if (Contains(name, ".attn.")) return TensorKind::kAttention;
  return TensorKind::kOther;
}

std::string_view KindName(TensorKind kind) {
  switch (kind) {
    case TensorKind::kEmbedding:
      return "embedding";
    case TensorKind::kHead:
      return "head";
    case TensorKind::kAttention:
      return "attention";
    case TensorKind::kCompressor:
      return "compressor";
    case TensorKind::kIndexer:
      return "indexer";
    case TensorKind::kGate:
      return "gate";
    case TensorKind::kRoutedExperts:
      return "routed experts";
    case TensorKind::kSharedExperts:
      return "shared experts";
    case TensorKind::kHyperConnections:
      return "mHC";
    case TensorKind::kEngramTable:
      return "Engram tables";
    case TensorKind::kEngram:
      return "Engram projections";
    case TensorKind::kNorm:
      return "norms";
    case TensorKind::kDraft:
      return "draft";
    case TensorKind::kVision:
      return "vision";
    case TensorKind::kOther:
      return "other";
  }
  return "?";
}

CheckpointReport BuildCheckpointReport(const ModelConfig& config,
                                       std::span<const StoredTensor> tensors) {
  CheckpointReport report;
  report.config = config;
  report.has_weights = !tensors.empty();
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape) {
    const TensorView view{dtype, shape, nullptr};
    report.tensors.push_back(
        {name, dtype, shape, static_cast<int64_t>(view.bytes()), KindOfTensor(name)});
  };
  if (report.has_weights) {
    for (const StoredTensor& tensor : tensors)
      add(tensor.name, tensor.view.dtype, tensor.view.shape);
  } else {
    for (const ExpectedTensor& tensor : ExpectedTensors(config)) {
      if (!tensor.optional) add(tensor.name, tensor.dtype, tensor.shape);
    }
  }
  for (const TensorRow& tensor : report.tensors) {
    for (KindTotal* total : {&report.kinds[static_cast<size_t>(tensor.kind)], &report.total}) {
      ++total->tensors;
      total->bytes += tensor.bytes;
    }
  }
  report.active = CountActive(report);
  AddKv(report);
  AddNotes(report);
  return report;
}

Result<CheckpointReport> InspectCheckpoint(const fs::path& folder, const ProgressFn& progress) {
  std::error_code error;
  const bool has_weights = fs::exists(folder / "model.safetensors.index.json", error) ||
                           fs::exists(folder / "model.safetensors", error);
  CheckpointReport report;
  if (has_weights) {
    DI_ASSIGN_OR_RETURN(const auto checkpoint,
                        Checkpoint::Open(folder, {.weight_check = WeightCheck::kNone}, progress));
    report = BuildCheckpointReport(checkpoint->config(), checkpoint->tensors());
    report.num_shards = checkpoint->num_shards();
  } else {
    DI_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder / "config.json", kMaxConfigBytes));
    auto config = ParseModelConfig(text);
    if (!config) return Forward(std::move(config).error(), folder.string());
    report = BuildCheckpointReport(*config, {});
  }
  report.folder = folder.string();
  return report;
}

}  // namespace deepinfer
