#include "loader/tensor_contract.h"

#include <algorithm>
#include <unordered_map>

namespace deepinfer {
namespace {

constexpr int64_t kTile = 32;   // FP8 weights: one scale a 32x32 tile
constexpr int64_t kGroup = 32;  // FP4 weights and Engram rows: one scale a row and 32 values
constexpr size_t kMaxListedProblems = 50;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

class ContractBuilder {
 public:
  explicit ContractBuilder(const ModelConfig& config) : c_(config) {}

  std::vector<ExpectedTensor> Build() {
    Add("embed.weight", DType::kBF16, {c_.vocab_size, c_.hidden_size});
    for (int layer = 0; layer < c_.num_layers; ++layer) AddLayer(layer);
    Add("norm.weight", DType::kBF16, {c_.hidden_size});
    Add("head.weight", DType::kBF16, {c_.vocab_size, c_.hidden_size});
    for (int stage = 0; stage < c_.num_draft_stages; ++stage) AddDraftStage(stage);
    return std::move(tensors_);
  }

 private:
  void Add(std::string name, DType dtype, Shape shape, bool optional = false) {
    tensors_.push_back({std::move(name), dtype, std::move(shape), optional});
  }

  void AddFp8(const std::string& name, int64_t rows, int64_t columns) {
    Add(name + ".weight", DType::kF8E4M3, {rows, columns});
    Add(name + ".scale", DType::kF8E8M0, {CeilDiv(rows, kTile), CeilDiv(columns, kTile)});
  }

  void AddFp4(const std::string& name, int64_t rows, int64_t columns) {
    Add(name + ".weight", DType::kI8, {rows, columns / 2});
    Add(name + ".scale", DType::kF8E8M0, {rows, columns / kGroup});
  }

  void AddLayer(int layer) {
    const std::string name = fmt::format("layers.{}", layer);
    const LayerRole& role = c_.roles[layer];
    if (role.engram >= 0) AddEngram(name + ".engram", c_.engram_num_embeddings[role.engram]);
    AddBlock(name, c_.num_experts, role);
  }

  void AddBlock(const std::string& name, int experts, const LayerRole& role) {
    for (const char* part : {"attn", "ffn"}) {
      Add(fmt::format("{}.hc_{}_fn", name, part), DType::kF32,
          {c_.hc_mixes(), c_.hc_mult * c_.hidden_size});
      Add(fmt::format("{}.hc_{}_base", name, part), DType::kF32, {c_.hc_mixes()});
      Add(fmt::format("{}.hc_{}_scale", name, part), DType::kF32, {3});
      Add(fmt::format("{}.{}_norm.weight", name, part), DType::kBF16, {c_.hidden_size});
    }
    AddAttention(name + ".attn", role);
    AddMoe(name + ".ffn", experts);
  }

  void AddAttention(const std::string& name, const LayerRole& role) {
    Add(name + ".attn_sink", DType::kF32, {c_.num_heads});
    AddFp8(name + ".wq_a", c_.q_lora_rank, c_.hidden_size);
    Add(name + ".q_norm.weight", DType::kBF16, {c_.q_lora_rank});
    AddFp8(name + ".wq_b", c_.num_heads * c_.head_dim, c_.q_lora_rank);
    AddFp8(name + ".wkv", c_.head_dim, c_.hidden_size);
    Add(name + ".kv_norm.weight", DType::kBF16, {c_.head_dim});
    AddFp8(name + ".wo_a", c_.o_groups * c_.o_lora_rank, c_.num_heads / c_.o_groups * c_.head_dim);
    AddFp8(name + ".wo_b", c_.hidden_size, c_.o_groups * c_.o_lora_rank);
    if (role.owns_kv) {
      Add(name + ".compressor.wkv.weight", DType::kBF16, {c_.head_dim, c_.hidden_size});
      if (role.ratio > 1) {
        Add(name + ".compressor.wgate.weight", DType::kBF16, {c_.head_dim, c_.hidden_size});
      }
      Add(name + ".compressor.norm.weight", DType::kBF16, {c_.head_dim});
      Add(name + ".indexer.wk.weight", DType::kBF16, {c_.index_head_dim, c_.head_dim});
      Add(name + ".indexer.k_norm.weight", DType::kBF16, {c_.index_head_dim});
    }
    if (role.owns_index) {
      AddFp8(name + ".indexer.wq_b", c_.index_heads * c_.index_head_dim, c_.q_lora_rank);
      Add(name + ".indexer.weights_proj.weight", DType::kBF16, {c_.index_heads, c_.hidden_size});
    }
  }

  void AddMoe(const std::string& name, int experts) {
    const int64_t width = c_.moe_intermediate_size;
    Add(name + ".gate.weight", DType::kBF16, {experts, c_.hidden_size});
    Add(name + ".gate.bias", DType::kF32, {experts});
    // Routes image tokens: of no use, but allowed, in a text-only checkpoint.
    Add(name + ".gate.bias_vl", DType::kF32, {experts}, !c_.has_vision);
    for (int expert = 0; expert < experts; ++expert) {
      const std::string expert_name = fmt::format("{}.experts.{}", name, expert);
      AddFp4(expert_name + ".w1", width, c_.hidden_size);
      AddFp4(expert_name + ".w2", c_.hidden_size, width);
      AddFp4(expert_name + ".w3", width, c_.hidden_size);
    }
    AddFp8(name + ".shared_experts.w1", width, c_.hidden_size);
    AddFp8(name + ".shared_experts.w2", c_.hidden_size, width);
    AddFp8(name + ".shared_experts.w3", width, c_.hidden_size);
  }

  void AddEngram(const std::string& name, int64_t rows) {
    Add(name + ".embed.weight", DType::kF8E4M3, {rows, c_.engram_head_dim});
    Add(name + ".embed.scale", DType::kF8E8M0, {rows, c_.engram_head_dim / kGroup});
    // Keys of every stream and one shared value.
    AddFp8(name + ".wkv", (c_.hc_mult + 1) * c_.hidden_size,
           c_.engram_columns() * c_.engram_head_dim);
    Add(name + ".q_weight", DType::kBF16, {c_.hc_mult, c_.hidden_size});
    Add(name + ".k_weight", DType::kBF16, {c_.hc_mult, c_.hidden_size});
  }

  void AddDraftStage(int stage) {
    const std::string name = fmt::format("mtp.{}", stage);
    if (stage == 0) {
      const auto taps = static_cast<int64_t>(c_.draft_target_layers.size());
      AddFp8(name + ".main_proj", c_.hidden_size, taps * c_.hidden_size);
      Add(name + ".main_norm.weight", DType::kBF16, {c_.hidden_size});
    }
    AddBlock(name, c_.draft_num_experts, LayerRole{});
    if (stage == c_.num_draft_stages - 1) {
      const int64_t rank = c_.draft_markov_rank;
      Add(name + ".norm.weight", DType::kBF16, {c_.hidden_size});
      Add(name + ".markov_head.embed.weight", DType::kBF16, {c_.vocab_size, rank});
      Add(name + ".markov_head.head.weight", DType::kBF16, {c_.vocab_size, rank});
      Add(name + ".confidence_head.proj.weight", DType::kBF16, {1, c_.hidden_size + rank});
    }
  }

  const ModelConfig& c_;
  std::vector<ExpectedTensor> tensors_;
};

// Collects lines for one message.
class ProblemList {
 public:
  void Add(std::string line) {
    if (++count_ <= kMaxListedProblems) lines_ += "\n  " + std::move(line);
  }
  bool empty() const { return count_ == 0; }
  Error ToError() const {
    std::string message = fmt::format(
        "the checkpoint's tensors do not fit its configuration, {} problems:{}", count_, lines_);
    if (count_ > kMaxListedProblems) {
      message += fmt::format("\n  ... and {} more", count_ - kMaxListedProblems);
    }
    return Error{ErrorCode::kDataLoss, std::move(message)};
  }

 private:
  size_t count_ = 0;
  std::string lines_;
};

// "mtp.<digits>.embed.weight" or "mtp.<digits>.head.weight".
bool IsDraftCopy(std::string_view name) {
  if (!name.starts_with("mtp.")) return false;
  name.remove_prefix(4);
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  name.remove_prefix(digits);
  return digits > 0 && (name == ".embed.weight" || name == ".head.weight");
}

}  // namespace

std::vector<ExpectedTensor> ExpectedTensors(const ModelConfig& config) {
  return ContractBuilder(config).Build();
}

bool IsIgnoredTensor(const ModelConfig& config, std::string_view name) {
  if (IsDraftCopy(name)) return true;
  return config.has_vision && (name.starts_with("vision.") || name.starts_with("aligner.") ||
                               name.starts_with("image_"));
}

bool IsEngramTable(std::string_view name) {
  return name.starts_with("layers.") &&
         (name.ends_with(".engram.embed.weight") || name.ends_with(".engram.embed.scale"));
}

bool IsRoutedExpert(std::string_view name) {
  return name.find(".ffn.experts.") != std::string_view::npos;
}

Result<ContractSummary> CheckTensorContract(const ModelConfig& config,
                                            std::span<const StoredTensor> tensors) {
  const std::vector<ExpectedTensor> expected = ExpectedTensors(config);
  std::unordered_map<std::string_view, const StoredTensor*> unclaimed;
  unclaimed.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) unclaimed.emplace(tensor.name, &tensor);

  ContractSummary summary;
  ProblemList problems;
  for (const ExpectedTensor& want : expected) {
    const auto found = unclaimed.find(want.name);
    if (found == unclaimed.end()) {
      if (!want.optional) {
        problems.Add(fmt::format("missing {} ({} {})", want.name, DTypeName(want.dtype),
                                 ShapeString(want.shape)));
      }
      continue;
    }
    const TensorView& have = found->second->view;
    if (have.dtype != want.dtype || have.shape != want.shape) {
      problems.Add(fmt::format("{} is {} {}; it must be {} {}", want.name, DTypeName(have.dtype),
                               ShapeString(have.shape), DTypeName(want.dtype),
                               ShapeString(want.shape)));
    }
    ++summary.checked;
    unclaimed.erase(found);
  }
  for (const StoredTensor& tensor : tensors) {
    if (!unclaimed.contains(tensor.name)) continue;
    if (IsIgnoredTensor(config, tensor.name)) {
      ++summary.ignored;
    } else {
      problems.Add(fmt::format("surplus {} ({} {}, in {})", tensor.name,
                               DTypeName(tensor.view.dtype), ShapeString(tensor.view.shape),
                               tensor.shard));
    }
  }
  if (!problems.empty()) return Forward(problems.ToError());
  return summary;
}

}  // namespace deepinfer
