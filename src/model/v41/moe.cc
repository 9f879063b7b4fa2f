// Mixture of experts with bias selection, and the FFN half of a block around it.
// Source: spec model-v41 sections 2.2, 2.6.
#include <algorithm>

#include "model/v41/block_pass.h"

namespace deepinfer::model::v41 {

using kernels::GemmItem;
using kernels::kGroup;
using kernels::MakeGemm;
using kernels::Q8Rows;

namespace {

// Rows [first, first + count).
Q8Rows RowsOf(const Q8Rows& x, int64_t first, int64_t count) {
  return {x.codes + first * x.cols, x.scales + first * (x.cols / kGroup), count, x.cols};
}

}  // namespace

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
  return RunExperts(moe, quantized, GroupByExpert(moe, ids, weights));
}

// Slots number the (row, expert) pairs by expert and then by row, so that an expert's rows are
// neighbours.
BlockPass::ExpertSlots BlockPass::GroupByExpert(const MoeWeights& moe, const int32_t* ids,
                                                const float* weights) {
  const int64_t topk = moe.topk, pairs = rows_ * topk;
  const auto experts = static_cast<int64_t>(moe.experts.size());
  ExpertSlots out;
  out.first = workspace_.Get<int32_t>(Slot::kExpertFirst, experts + 1);
  out.rows = workspace_.Get<int32_t>(Slot::kExpertRows, pairs);
  // The shared expert takes every row with weight 1, behind the routed ones.
  out.weights = workspace_.Get<float>(Slot::kExpertRowWeights, pairs + rows_);
  out.of_row = workspace_.Get<int32_t>(Slot::kExpertSlots, pairs);
  std::fill_n(out.first, experts + 1, 0);
  for (int64_t i = 0; i < pairs; ++i) ++out.first[ids[i] + 1];
  for (int64_t e = 0; e < experts; ++e) out.first[e + 1] += out.first[e];
  auto* next = workspace_.Get<int32_t>(Slot::kExpertNext, experts);
  std::copy_n(out.first, experts, next);
  for (int64_t i = 0; i < pairs; ++i) {
    const int32_t slot = next[ids[i]]++;
    out.rows[slot] = static_cast<int32_t>(i / topk);
    out.weights[slot] = weights[i];
  }
  std::fill_n(out.weights + pairs, rows_, 1.0f);
  // Walking the slots in order meets every row's experts by ascending id.
  auto* found = workspace_.Get<int32_t>(Slot::kExpertFound, rows_);
  std::fill_n(found, rows_, 0);
  for (int64_t slot = 0; slot < pairs; ++slot) {
    const int32_t row = out.rows[slot];
    out.of_row[row * topk + found[row]++] = static_cast<int32_t>(slot);
  }
  return out;
}

// Every active expert's weights are read once, and the shared expert runs with the routed ones:
// slots [0, pairs) are theirs, [pairs, pairs + rows) its.
bf16* BlockPass::RunExperts(const MoeWeights& moe, const Q8Rows& x, const ExpertSlots& slots) {
  const int64_t hidden = config_.hidden_size, inner = config_.moe_intermediate_size;
  const int64_t pairs = rows_ * moe.topk, all = pairs + rows_;
  const auto experts = static_cast<int64_t>(moe.experts.size());
  auto* a = workspace_.Get<bf16>(Slot::kExpertA, all * inner);
  auto* b = workspace_.Get<bf16>(Slot::kExpertB, all * inner);
  auto* y = workspace_.Get<bf16>(Slot::kExpertOut, pairs * hidden);
  auto* out = workspace_.Get<bf16>(Slot::kSublayerOut, rows_ * hidden);
  const Q8Rows u{workspace_.Get<uint8_t>(Slot::kExpertUCodes, all * inner),
                 workspace_.Get<uint8_t>(Slot::kExpertUScales, all * (inner / kGroup)), all, inner};
  auto* items = workspace_.Get<GemmItem>(Slot::kGemmItems, 2 * (std::min(experts, pairs) + 1));

  int64_t count = 0;
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t first = slots.first[e], rows = slots.first[e + 1] - first;
    if (rows == 0) continue;
    for (const bool gate : {true, false}) {
      GemmItem& item = items[count++];
      item = MakeGemm(x, gate ? moe.experts[e].w1 : moe.experts[e].w3,
                      (gate ? a : b) + first * inner, inner);
      item.gather = slots.rows + first;
      item.gather_rows = rows;
    }
  }
  items[count++] = MakeGemm(x, moe.shared_w1, a + pairs * inner, inner);
  items[count++] = MakeGemm(x, moe.shared_w3, b + pairs * inner, inner);
  kernels_.gemm(pool_, items, count);

  // The routing weight goes in before w2, hence before its quantisation.
  kernels_.swiglu_q8(pool_, {.rows = all,
                             .cols = inner,
                             .a = a,
                             .b = b,
                             .weight = slots.weights,
                             .limit = config_.swiglu_limit,
                             .out = u});

  count = 0;
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t first = slots.first[e], rows = slots.first[e + 1] - first;
    if (rows == 0) continue;
    items[count++] =
        MakeGemm(RowsOf(u, first, rows), moe.experts[e].w2, y + first * hidden, hidden);
  }
  items[count++] = MakeGemm(RowsOf(u, pairs, rows_), moe.shared_w2, out, hidden);
  kernels_.gemm(pool_, items, count);
  kernels_.combine(pool_, {.rows = rows_,
                           .topk = moe.topk,
                           .hidden = hidden,
                           .y = y,
                           .slots = slots.of_row,
                           .shared = out,
                           .out = out});
  return out;
}

}  // namespace deepinfer::model::v41
