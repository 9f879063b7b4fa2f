// The checkpoint's tensors as kernel arguments, one struct a block. Views only; the TensorSource
// owns the bytes, except for tensors that stand misaligned in their file, which are copied.
// Source: spec model-v41 section 3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/model_config.h"
#include "kernels/kernel_table.h"
#include "tensor/tensor_view.h"

namespace deepinfer::model::v41 {

struct MhcWeights {
  kernels::F32Matrix fn;
  const float* scale = nullptr;
  const float* base = nullptr;
};

struct CompressorWeights {
  kernels::Bf16Matrix wkv;
  kernels::Bf16Matrix wgate;  // ratio 2 only
  const bf16* norm = nullptr;
  kernels::Bf16Matrix index_wk;
  const bf16* index_k_norm = nullptr;
};

struct IndexerWeights {
  kernels::Fp8Matrix wq_b;
  kernels::Bf16Matrix weights_proj;
};

struct AttentionWeights {
  kernels::Fp8Matrix wq_a, wq_b, wkv, wo_a, wo_b;
  const bf16* q_norm = nullptr;
  const bf16* kv_norm = nullptr;
  const float* sink = nullptr;
};

struct ExpertWeights {
  kernels::Fp4Matrix w1, w2, w3;
};

struct MoeWeights {
  kernels::Bf16Matrix gate;
  const float* bias = nullptr;
  const float* image_bias = nullptr;  // null: the checkpoint has none
  std::vector<ExpertWeights> experts;
  kernels::Fp8Matrix shared_w1, shared_w2, shared_w3;
  int topk = 0;
};

struct EngramWeights {
  const uint8_t* codes = nullptr;
  const uint8_t* scales = nullptr;
  int64_t table_rows = 0;
  kernels::Fp8Matrix wkv;
  const bf16* q_weight = nullptr;
  const bf16* k_weight = nullptr;
};

// One transformer block, of the trunk or of a draft stage.
struct BlockWeights {
  std::string name;  // "layers.3" or "mtp.0"
  const bf16* attn_norm = nullptr;
  const bf16* ffn_norm = nullptr;
  MhcWeights attn_mhc, ffn_mhc;
  AttentionWeights attention;
  CompressorWeights compressor;  // where the layer owns KV
  IndexerWeights indexer;        // where the layer owns a selection list
  MoeWeights moe;
};

struct DraftWeights {
  kernels::Fp8Matrix main_proj;
  const bf16* main_norm = nullptr;
  std::vector<BlockWeights> stages;
  const bf16* norm = nullptr;
  kernels::Bf16Matrix markov_embed, markov_head, confidence;
};

struct ModelWeights {
  kernels::Bf16Matrix embed, head;
  const bf16* norm = nullptr;
  std::vector<BlockWeights> layers;
  std::vector<EngramWeights> engrams;  // in the order of config.engram_layers
  DraftWeights draft;
  std::vector<std::unique_ptr<std::byte[]>> copies;
};

// Binds every tensor. A missing tensor or one of another dtype or shape is an error naming it.
Result<std::unique_ptr<ModelWeights>> BindWeights(const ModelConfig& config,
                                                  const TensorSource& source);

}  // namespace deepinfer::model::v41
