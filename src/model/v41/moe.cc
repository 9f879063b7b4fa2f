// Mixture of experts with bias selection, and the FFN half of a block around it.
// Source: spec model-v41 sections 2.2, 2.6.
#include <algorithm>

#include "model/v41/block_pass.h"

namespace deepinfer::model::v41 {

using kernels::kGroup;
using kernels::Q8Rows;

void BlockPass::FeedForward(const BlockWeights& block, const uint8_t* is_image) {
  // The collapse uses the attention's coefficients; the FFN's own go to the next block.
  bf16* x =
      SublayerInput(workspace_.Get<float>(Slot::kAttnPre, rows_ * config_.hc_mult), block.ffn_norm);
  Mixes(block, block.ffn_mhc, "ffn", pre_);
  Observe(block.name, "ffn_in", DType::kBF16, {rows_, config_.hidden_size}, x);
  bf16* y = Moe(block, x, is_image);
  Observe(block.name, "ffn_out", DType::kBF16, {rows_, config_.hidden_size}, y);
  AddSublayer(y);
}

bf16* BlockPass::Moe(const BlockWeights& block, const bf16* x, const uint8_t* is_image) {
  const MoeWeights& moe = block.moe;
  const int64_t hidden = config_.hidden_size, topk = moe.topk;
  const auto experts = static_cast<int64_t>(moe.experts.size());
  auto* logits = workspace_.Get<float>(Slot::kGateLogits, rows_ * experts);
  auto* scores = workspace_.Get<float>(Slot::kGateScores, rows_ * experts);
  auto* ids = workspace_.Get<int32_t>(Slot::kExpertIds, rows_ * topk);
  auto* weights = workspace_.Get<float>(Slot::kExpertWeights, rows_ * topk);
  kernels_.Multiply(pool_, kernels::MakeGemm(kernels::RowsView{x, rows_, hidden, hidden}, moe.gate,
                                             logits, experts));
  kernels_.gate(pool_, {.rows = rows_,
                        .experts = static_cast<int>(experts),
                        .topk = moe.topk,
                        .logits = logits,
                        .bias = moe.bias,
                        .image_bias = moe.image_bias,
                        .is_image = is_image,
                        .route_scale = config_.routed_scaling_factor,
                        .scores = scores,
                        .ids = ids,
                        .weights = weights});
  Observe(block.name, "gate_scores", DType::kF32, {rows_, experts}, scores);
  Observe(block.name, "expert_ids", DType::kI32, {rows_, topk}, ids);
  Observe(block.name, "expert_weights", DType::kF32, {rows_, topk}, weights);

  const Q8Rows quantized =
      Quantize({x, rows_, hidden, hidden}, Slot::kNormedCodes, Slot::kNormedScales);
  auto* acc = workspace_.Get<float>(Slot::kExpertAcc, rows_ * hidden);
  std::fill_n(acc, rows_ * hidden, 0.0f);
  // Experts in ascending order: every row sums its experts' outputs by ascending id.
  auto* rows = workspace_.Get<int32_t>(Slot::kExpertRows, rows_);
  auto* row_weights = workspace_.Get<float>(Slot::kExpertRowWeights, rows_);
  for (int64_t e = 0; e < experts; ++e) {
    int64_t count = 0;
    for (int64_t i = 0; i < rows_ * topk; ++i) {
      if (ids[i] != e) continue;
      rows[count] = static_cast<int32_t>(i / topk);
      row_weights[count++] = weights[i];
    }
    if (count > 0) RunExpert(moe.experts[e], quantized, rows, row_weights, count, acc);
  }
  bf16* y = RunSharedExpert(moe, quantized);
  kernels_.add_round(pool_, acc, y, rows_ * hidden, y);
  return y;
}

void BlockPass::RunExpert(const ExpertWeights& expert, const Q8Rows& x, const int32_t* rows,
                          const float* weights, int64_t count, float* acc) {
  const int64_t hidden = config_.hidden_size, inner = config_.moe_intermediate_size;
  const int64_t scale_cols = hidden / kGroup;
  const Q8Rows gathered{workspace_.Get<uint8_t>(Slot::kExpertCodes, count * hidden),
                        workspace_.Get<uint8_t>(Slot::kExpertScales, count * scale_cols), count,
                        hidden};
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(x.codes + rows[i] * hidden, hidden, gathered.codes + i * hidden);
    std::copy_n(x.scales + rows[i] * scale_cols, scale_cols, gathered.scales + i * scale_cols);
  }
  auto* a = workspace_.Get<bf16>(Slot::kExpertA, count * inner);
  auto* b = workspace_.Get<bf16>(Slot::kExpertB, count * inner);
  auto* u = workspace_.Get<bf16>(Slot::kExpertU, count * inner);
  auto* y = workspace_.Get<bf16>(Slot::kExpertOut, count * hidden);
  kernels_.Multiply(pool_, kernels::MakeGemm(gathered, expert.w1, a, inner));
  kernels_.Multiply(pool_, kernels::MakeGemm(gathered, expert.w3, b, inner));
  // The routing weight goes in before w2, hence before its quantisation.
  kernels_.swiglu(pool_, a, b, weights, count, inner, config_.swiglu_limit, u);
  const Q8Rows quantized =
      Quantize({u, count, inner, inner}, Slot::kExpertUCodes, Slot::kExpertUScales);
  kernels_.Multiply(pool_, kernels::MakeGemm(quantized, expert.w2, y, hidden));
  kernels_.scatter_add(pool_, y, rows, count, hidden, acc);
}

bf16* BlockPass::RunSharedExpert(const MoeWeights& moe, const Q8Rows& x) {
  const int64_t hidden = config_.hidden_size, inner = config_.moe_intermediate_size;
  auto* a = workspace_.Get<bf16>(Slot::kExpertA, rows_ * inner);
  auto* b = workspace_.Get<bf16>(Slot::kExpertB, rows_ * inner);
  auto* u = workspace_.Get<bf16>(Slot::kExpertU, rows_ * inner);
  kernels_.Multiply(pool_, kernels::MakeGemm(x, moe.shared_w1, a, inner));
  kernels_.Multiply(pool_, kernels::MakeGemm(x, moe.shared_w3, b, inner));
  kernels_.swiglu(pool_, a, b, nullptr, rows_, inner, config_.swiglu_limit, u);
  const Q8Rows quantized =
      Quantize({u, rows_, inner, inner}, Slot::kExpertUCodes, Slot::kExpertUScales);
  auto* y = workspace_.Get<bf16>(Slot::kSublayerOut, rows_ * hidden);
  kernels_.Multiply(pool_, kernels::MakeGemm(quantized, moe.shared_w2, y, hidden));
  return y;
}

}  // namespace deepinfer::model::v41
