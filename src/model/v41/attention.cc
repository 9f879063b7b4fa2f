// Attention projections: query path, window KV, core attention, grouped output projection.
// Source: spec model-v41 sections 2.5.3, 2.5.6, 2.5.7.
#include <cmath>

#include "model/v41/block_pass.h"

namespace deepinfer::model::v41 {

using kernels::Fp8Matrix;
using kernels::GemmItem;
using kernels::kGroup;
using kernels::MakeGemm;
using kernels::Q8Rows;

Q8Rows BlockPass::QuantizeInput(const bf16* x) {
  const int64_t hidden = config_.hidden_size;
  return Quantize({x, rows_, hidden, hidden}, Slot::kNormedCodes, Slot::kNormedScales);
}

void BlockPass::WindowKv(const BlockWeights& block, const Q8Rows& x, const Rotation& rotation,
                         bool query_too, uint8_t* records) {
  const int64_t dim = config_.head_dim;
  auto* kv = workspace_.Get<bf16>(Slot::kKv, x.rows * dim);
  auto** out = workspace_.Get<uint8_t*>(Slot::kRecordPointers, x.rows);
  GemmItem items[2] = {MakeGemm(x, block.attention.wkv, kv, dim)};
  if (query_too) {
    const int64_t rank = config_.q_lora_rank;
    auto* qr = workspace_.Get<bf16>(Slot::kQueryLatent, x.rows * rank);
    items[1] = MakeGemm(x, block.attention.wq_a, qr, rank);
  }
  kernels_.gemm(pool_, items, query_too ? 2 : 1);
  kernels_.rms_norm(pool_, {kv, x.rows, dim, dim}, block.attention.kv_norm, config_.rms_norm_eps,
                    kv);
  kernels_.rope(pool_, kv, x.rows, 1, dim, config_.rope_dim, rotation.cos, rotation.sin, false);
  for (int64_t r = 0; r < x.rows; ++r) out[r] = records + r * config_.window_entry_bytes();
  kernels_.pack_window(pool_, kv, x.rows, dim, out);
}

Q8Rows BlockPass::QueryLatent(const BlockWeights& block, const Q8Rows& x, bool projected) {
  const int64_t rank = config_.q_lora_rank;
  auto* qr = workspace_.Get<bf16>(Slot::kQueryLatent, rows_ * rank);
  if (!projected) kernels_.Multiply(pool_, MakeGemm(x, block.attention.wq_a, qr, rank));
  kernels_.rms_norm(pool_, {qr, rows_, rank, rank}, block.attention.q_norm, config_.rms_norm_eps,
                    qr);
  Observe(block.name, "qr", DType::kBF16, {rows_, rank}, qr);
  return Quantize({qr, rows_, rank, rank}, Slot::kQueryLatentCodes, Slot::kQueryLatentScales);
}

bf16* BlockPass::Queries(const BlockWeights& block, const Q8Rows& latent,
                         const Rotation& rotation) {
  const int64_t heads = config_.num_heads, dim = config_.head_dim;
  auto* q = workspace_.Get<bf16>(Slot::kQuery, rows_ * heads * dim);
  kernels_.Multiply(pool_, MakeGemm(latent, block.attention.wq_b, q, heads * dim));
  kernels_.rope(pool_, q, rows_, heads, dim, config_.rope_dim, rotation.cos, rotation.sin, false);
  Observe(block.name, "attn_q", DType::kBF16, {rows_, heads, dim}, q);
  return q;
}

bf16* BlockPass::AttendAndProject(const BlockWeights& block, bf16* q,
                                  const kernels::AttentionQuery* lists, const Rotation& rotation) {
  const int64_t heads = config_.num_heads, dim = config_.head_dim, groups = config_.o_groups;
  const int64_t rank = config_.o_lora_rank, hidden = config_.hidden_size;
  const int64_t width = heads * dim, group_width = width / groups;
  auto* o = workspace_.Get<bf16>(Slot::kAttnOut, rows_ * width);
  kernels_.attention(pool_, {.queries = rows_,
                             .heads = heads,
                             .dim = dim,
                             .q = q,
                             .sink = block.attention.sink,
                             .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))),
                             .lists = lists,
                             .out = o});
  Observe(block.name, "attn_o", DType::kBF16, {rows_, heads, dim}, o);
  kernels_.rope(pool_, o, rows_, heads, dim, config_.rope_dim, rotation.cos, rotation.sin, true);

  auto* latent = workspace_.Get<bf16>(Slot::kAttnLatent, rows_ * groups * rank);
  const Fp8Matrix& wo_a = block.attention.wo_a;
  auto* items = workspace_.Get<GemmItem>(Slot::kGemmItems, groups);
  for (int64_t g = 0; g < groups; ++g) {
    // rank is a multiple of 32 (checked at load), so that no scale tile spans two groups.
    const Fp8Matrix group{wo_a.codes + g * rank * group_width,
                          wo_a.scales + g * rank / kGroup * (group_width / kGroup), rank,
                          group_width};
    items[g] = MakeGemm(kernels::RowsView{o + g * group_width, rows_, group_width, width}, group,
                        latent + g * rank, groups * rank);
  }
  kernels_.gemm(pool_, items, groups);
  const Q8Rows quantized = Quantize({latent, rows_, groups * rank, groups * rank},
                                    Slot::kAttnLatentCodes, Slot::kAttnLatentScales);
  auto* y = workspace_.Get<bf16>(Slot::kSublayerOut, rows_ * hidden);
  kernels_.Multiply(pool_, MakeGemm(quantized, block.attention.wo_b, y, hidden));
  Observe(block.name, "attn_out", DType::kBF16, {rows_, hidden}, y);
  return y;
}

}  // namespace deepinfer::model::v41
