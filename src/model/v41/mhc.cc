// Single-pass manifold-constrained hyper-connections around a sublayer. Source: spec model-v41
// sections 2.2, 2.3. A sublayer's input is collapsed with the coefficients that the previous
// sublayer computed; its own take effect one sublayer later.
#include "model/v41/block_pass.h"

namespace deepinfer::model::v41 {

bf16* BlockPass::SublayerInput(const float* pre, const bf16* norm) {
  const int64_t hidden = config_.hidden_size;
  auto* collapsed = workspace_.Get<bf16>(Slot::kCollapsed, rows_ * hidden);
  auto* x = workspace_.Get<bf16>(Slot::kNormed, rows_ * hidden);
  kernels_.mhc_collapse(pool_, h_, pre, rows_, config_.hc_mult, hidden, collapsed);
  kernels_.rms_norm(pool_, {collapsed, rows_, hidden, hidden}, norm, config_.rms_norm_eps, x);
  return x;
}

void BlockPass::Mixes(const BlockWeights& block, const MhcWeights& weights,
                      std::string_view sublayer, float* pre) {
  const int64_t streams = config_.hc_mult;
  auto* post = workspace_.Get<float>(Slot::kPost, rows_ * streams);
  auto* comb = workspace_.Get<float>(Slot::kComb, rows_ * streams * streams);
  kernels_.mhc_mixes(pool_, {.rows = rows_,
                             .hidden = config_.hidden_size,
                             .streams = config_.hc_mult,
                             .h = h_,
                             .fn = weights.fn,
                             .scale = weights.scale,
                             .base = weights.base,
                             .sinkhorn_iterations = config_.hc_sinkhorn_iters,
                             .norm_eps = config_.rms_norm_eps,
                             .hc_eps = config_.hc_eps,
                             .pre = pre,
                             .post = post,
                             .comb = comb});
  const std::string prefix = block.name + "." + std::string(sublayer);
  Observe("", prefix + "_pre", DType::kF32, {rows_, streams}, pre);
  Observe("", prefix + "_post", DType::kF32, {rows_, streams}, post);
  Observe("", prefix + "_comb", DType::kF32, {rows_, streams, streams}, comb);
}

void BlockPass::AddSublayer(const bf16* y) {
  const int64_t streams = config_.hc_mult;
  kernels_.mhc_expand(pool_, y, workspace_.Get<float>(Slot::kPost, rows_ * streams),
                      workspace_.Get<float>(Slot::kComb, rows_ * streams * streams), rows_,
                      config_.hc_mult, config_.hidden_size, h_);
}

bf16* BlockPass::FinalNorm(const bf16* h, const float* pre, int64_t rows, const bf16* norm) {
  const int64_t hidden = config_.hidden_size;
  auto* collapsed = workspace_.Get<bf16>(Slot::kCollapsed, rows * hidden);
  auto* x = workspace_.Get<bf16>(Slot::kHeadIn, rows * hidden);
  kernels_.mhc_collapse(pool_, h, pre, rows, config_.hc_mult, hidden, collapsed);
  kernels_.rms_norm(pool_, {collapsed, rows, hidden, hidden}, norm, config_.rms_norm_eps, x);
  return x;
}

}  // namespace deepinfer::model::v41
