#include "model/v41/weights.h"

#include <cstring>
#include <string_view>

namespace deepinfer::model::v41 {
namespace {

using kernels::Bf16Matrix;
using kernels::CeilDiv;
using kernels::F32Matrix;
using kernels::Fp4Matrix;
using kernels::Fp8Matrix;
using kernels::kGroup;

// Looks tensors up and remembers the first failure, so that binding reads as a plain list.
class Binder {
 public:
  Binder(const TensorSource& source, ModelWeights& weights) : source_(source), weights_(weights) {}

  Status status() const { return status_; }
  bool Has(const std::string& name) const { return source_.Find(name) != nullptr; }

  const std::byte* Bytes(const std::string& name, DType dtype, const Shape& shape) {
    const TensorView* view = source_.Find(name);
    if (view == nullptr || view->dtype != dtype || view->shape != shape) {
      if (status_) {
        status_ = MakeError(ErrorCode::kDataLoss, "tensor {}: expected {} {}, found {}", name,
                            DTypeName(dtype), ShapeString(shape),
                            view == nullptr ? "none"
                                            : fmt::format("{} {}", DTypeName(view->dtype),
                                                          ShapeString(view->shape)));
      }
      return nullptr;
    }
    if (reinterpret_cast<uintptr_t>(view->data) % DTypeBytes(dtype) == 0) return view->data;
    auto& copy = weights_.copies.emplace_back(new std::byte[view->bytes()]);
    std::memcpy(copy.get(), view->data, view->bytes());
    return copy.get();
  }

  const bf16* Bf16(const std::string& name, const Shape& shape) {
    return reinterpret_cast<const bf16*>(Bytes(name, DType::kBF16, shape));
  }
  const float* F32(const std::string& name, const Shape& shape) {
    return reinterpret_cast<const float*>(Bytes(name, DType::kF32, shape));
  }
  const uint8_t* U8(const std::string& name, DType dtype, const Shape& shape) {
    return reinterpret_cast<const uint8_t*>(Bytes(name, dtype, shape));
  }

  Bf16Matrix Bf16M(const std::string& name, int64_t n, int64_t k) {
    return {Bf16(name + ".weight", {n, k}), n, k};
  }
  Fp8Matrix Fp8M(const std::string& name, int64_t n, int64_t k) {
    return {U8(name + ".weight", DType::kF8E4M3, {n, k}),
            U8(name + ".scale", DType::kF8E8M0, {CeilDiv(n, kGroup), CeilDiv(k, kGroup)}), n, k};
  }
  Fp4Matrix Fp4M(const std::string& name, int64_t n, int64_t k) {
    return {U8(name + ".weight", DType::kI8, {n, k / 2}),
            U8(name + ".scale", DType::kF8E8M0, {n, k / kGroup}), n, k};
  }

 private:
  const TensorSource& source_;
  ModelWeights& weights_;
  Status status_;
};

MhcWeights BindMhc(Binder& bind, const ModelConfig& config, const std::string& prefix) {
  const int64_t mixes = config.hc_mixes(), width = config.hc_mult * config.hidden_size;
  return {F32Matrix{bind.F32(prefix + "_fn", {mixes, width}), mixes, width},
          bind.F32(prefix + "_scale", {3}), bind.F32(prefix + "_base", {mixes})};
}

AttentionWeights BindAttention(Binder& bind, const ModelConfig& config, const std::string& p) {
  const int64_t heads_dim = config.num_heads * config.head_dim;
  const int64_t o_latent = config.o_groups * config.o_lora_rank;
  AttentionWeights w;
  w.wq_a = bind.Fp8M(p + ".wq_a", config.q_lora_rank, config.hidden_size);
  w.wq_b = bind.Fp8M(p + ".wq_b", heads_dim, config.q_lora_rank);
  w.wkv = bind.Fp8M(p + ".wkv", config.head_dim, config.hidden_size);
  w.wo_a = bind.Fp8M(p + ".wo_a", o_latent, heads_dim / config.o_groups);
  w.wo_b = bind.Fp8M(p + ".wo_b", config.hidden_size, o_latent);
  w.q_norm = bind.Bf16(p + ".q_norm.weight", {config.q_lora_rank});
  w.kv_norm = bind.Bf16(p + ".kv_norm.weight", {config.head_dim});
  w.sink = bind.F32(p + ".attn_sink", {config.num_heads});
  return w;
}

CompressorWeights BindCompressor(Binder& bind, const ModelConfig& config, const std::string& p,
                                 int ratio) {
  CompressorWeights w;
  w.wkv = bind.Bf16M(p + ".compressor.wkv", config.head_dim, config.hidden_size);
  if (ratio == 2) {
    w.wgate = bind.Bf16M(p + ".compressor.wgate", config.head_dim, config.hidden_size);
  }
  w.norm = bind.Bf16(p + ".compressor.norm.weight", {config.head_dim});
  w.index_wk = bind.Bf16M(p + ".indexer.wk", config.index_head_dim, config.head_dim);
  w.index_k_norm = bind.Bf16(p + ".indexer.k_norm.weight", {config.index_head_dim});
  return w;
}

MoeWeights BindMoe(Binder& bind, const ModelConfig& config, const std::string& p, int experts,
                   int topk) {
  const int64_t hidden = config.hidden_size, inner = config.moe_intermediate_size;
  MoeWeights w;
  w.topk = topk;
  w.gate = bind.Bf16M(p + ".gate", experts, hidden);
  w.bias = bind.F32(p + ".gate.bias", {experts});
  if (bind.Has(p + ".gate.bias_vl")) w.image_bias = bind.F32(p + ".gate.bias_vl", {experts});
  for (int e = 0; e < experts; ++e) {
    const std::string expert = fmt::format("{}.experts.{}", p, e);
    w.experts.push_back({bind.Fp4M(expert + ".w1", inner, hidden),
                         bind.Fp4M(expert + ".w2", hidden, inner),
                         bind.Fp4M(expert + ".w3", inner, hidden)});
  }
  w.shared_w1 = bind.Fp8M(p + ".shared_experts.w1", inner, hidden);
  w.shared_w2 = bind.Fp8M(p + ".shared_experts.w2", hidden, inner);
  w.shared_w3 = bind.Fp8M(p + ".shared_experts.w3", inner, hidden);
  return w;
}

BlockWeights BindBlock(Binder& bind, const ModelConfig& config, const std::string& name,
                       const LayerRole& role, int experts, int topk) {
  BlockWeights block;
  block.name = name;
  block.attn_norm = bind.Bf16(name + ".attn_norm.weight", {config.hidden_size});
  block.ffn_norm = bind.Bf16(name + ".ffn_norm.weight", {config.hidden_size});
  block.attn_mhc = BindMhc(bind, config, name + ".hc_attn");
  block.ffn_mhc = BindMhc(bind, config, name + ".hc_ffn");
  block.attention = BindAttention(bind, config, name + ".attn");
  if (role.owns_kv) {
    block.compressor = BindCompressor(bind, config, name + ".attn", role.ratio);
  }
  if (role.owns_index) {
    block.indexer = {
        bind.Fp8M(name + ".attn.indexer.wq_b", config.index_heads * config.index_head_dim,
                  config.q_lora_rank),
        bind.Bf16M(name + ".attn.indexer.weights_proj", config.index_heads, config.hidden_size)};
  }
  block.moe = BindMoe(bind, config, name + ".ffn", experts, topk);
  return block;
}

EngramWeights BindEngram(Binder& bind, const ModelConfig& config, int table) {
  const std::string p = fmt::format("layers.{}.engram", config.engram_layers[table]);
  const int64_t rows = config.engram_num_embeddings[table], dim = config.engram_head_dim;
  const Shape streams = {config.hc_mult, config.hidden_size};
  EngramWeights w;
  w.table_rows = rows;
  w.codes = bind.U8(p + ".embed.weight", DType::kF8E4M3, {rows, dim});
  w.scales = bind.U8(p + ".embed.scale", DType::kF8E8M0, {rows, dim / kGroup});
  w.wkv = bind.Fp8M(p + ".wkv", (config.hc_mult + 1) * config.hidden_size,
                    config.engram_columns() * dim);
  w.q_weight = bind.Bf16(p + ".q_weight", streams);
  w.k_weight = bind.Bf16(p + ".k_weight", streams);
  return w;
}

DraftWeights BindDraft(Binder& bind, const ModelConfig& config) {
  DraftWeights w;
  if (config.num_draft_stages == 0) return w;
  const int64_t taps = static_cast<int64_t>(config.draft_target_layers.size());
  for (int stage = 0; stage < config.num_draft_stages; ++stage) {
    w.stages.push_back(BindBlock(bind, config, fmt::format("mtp.{}", stage), LayerRole{},
                                 config.draft_num_experts, config.draft_experts_per_token));
  }
  const std::string& last = w.stages.back().name;
  w.main_proj = bind.Fp8M("mtp.0.main_proj", config.hidden_size, taps * config.hidden_size);
  w.main_norm = bind.Bf16("mtp.0.main_norm.weight", {config.hidden_size});
  w.norm = bind.Bf16(last + ".norm.weight", {config.hidden_size});
  w.markov_embed =
      bind.Bf16M(last + ".markov_head.embed", config.vocab_size, config.draft_markov_rank);
  w.markov_head =
      bind.Bf16M(last + ".markov_head.head", config.vocab_size, config.draft_markov_rank);
  w.confidence =
      bind.Bf16M(last + ".confidence_head.proj", 1, config.hidden_size + config.draft_markov_rank);
  return w;
}

}  // namespace

Result<std::unique_ptr<ModelWeights>> BindWeights(const ModelConfig& config,
                                                  const TensorSource& source) {
  auto weights = std::make_unique<ModelWeights>();
  Binder bind(source, *weights);
  weights->embed = bind.Bf16M("embed", config.vocab_size, config.hidden_size);
  weights->head = bind.Bf16M("head", config.vocab_size, config.hidden_size);
  weights->norm = bind.Bf16("norm.weight", {config.hidden_size});
  for (int i = 0; i < config.num_layers; ++i) {
    weights->layers.push_back(BindBlock(bind, config, fmt::format("layers.{}", i), config.roles[i],
                                        config.num_experts, config.experts_per_token));
  }
  for (size_t table = 0; table < config.engram_layers.size(); ++table) {
    weights->engrams.push_back(BindEngram(bind, config, static_cast<int>(table)));
  }
  weights->draft = BindDraft(bind, config);
  if (const Status status = bind.status(); !status) return Forward(status.error());
  return weights;
}

}  // namespace deepinfer::model::v41
