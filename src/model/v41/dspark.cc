// DSpark: filling the draft rings from the trunk's taps, and drafting a block.
// Source: spec model-v41 section 6.
#include <algorithm>
#include <cstring>

#include "model/v41/draft_pass.h"
#include "model/v41/forward_pass.h"
#include "model/v41/rope_table.h"

namespace deepinfer::model::v41 {

using kernels::AttentionQuery;
using kernels::Q8Rows;
using kernels::WindowView;

// Context KV of every accepted position, for each stage: no norm and no mHC on this path. Only the
// positions that the rings keep are computed.
void ForwardPass::FillDraftRings() {
  const DraftWeights& draft = model_.weights_->draft;
  const int64_t hidden = config_.hidden_size, half = config_.rope_dim / 2;
  const int64_t width = hidden * std::ssize(config_.draft_target_layers);
  Observe("", "taps", DType::kBF16, {rows_, width}, taps_);
  for (const Segment& segment : segments_) {
    if (!segment.state->with_draft() || segment.rows == 0) continue;
    const int64_t bytes = config_.window_entry_bytes();
    const int64_t count = std::min(segment.rows, segment.state->layout().ring_slots);
    const int64_t row = segment.row + segment.rows - count;
    const Q8Rows taps =
        Quantize({taps_ + row * width, count, width, width}, Slot::kTapCodes, Slot::kTapScales);
    auto* m = workspace_.Get<bf16>(Slot::kMainOut, count * hidden);
    kernels_.Multiply(pool_, kernels::MakeGemm(taps, draft.main_proj, m, hidden));
    kernels_.rms_norm(pool_, {m, count, hidden, hidden}, draft.main_norm, config_.rms_norm_eps, m);
    Observe("", "main_x", DType::kBF16, {count, hidden}, m);
    const Q8Rows quantized =
        Quantize({m, count, hidden, hidden}, Slot::kMainCodes, Slot::kMainScales);
    const Rotation rotation{window_.cos + row * half, window_.sin + row * half};
    for (size_t stage = 0; stage < draft.stages.size(); ++stage) {
      const int64_t ring = config_.num_layers + static_cast<int64_t>(stage);
      auto* records = workspace_.Get<uint8_t>(Slot::kDraftRecords, count * bytes);
      WindowKv(draft.stages[stage], quantized, rotation, false, records);
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(segment.state->WindowRecord(ring, positions_[row + i]), records + i * bytes,
                    bytes);
      }
    }
  }
}

void DraftPass::Run(int32_t next, DraftResult& out) {
  const DraftWeights& draft = model_.weights_->draft;
  const int64_t hidden = config_.hidden_size, half = config_.rope_dim / 2;
  rows_ = config_.draft_block_size;
  rotation_ = {workspace_.Get<float>(Slot::kWindowCos, rows_ * half),
               workspace_.Get<float>(Slot::kWindowSin, rows_ * half)};
  records_ = workspace_.Get<uint8_t>(Slot::kWindowRecords, rows_ * config_.window_entry_bytes());
  auto* tokens = workspace_.Get<int32_t>(Slot::kTokens, rows_);
  auto* positions = workspace_.Get<int64_t>(Slot::kPositions, rows_);
  for (int64_t r = 0; r < rows_; ++r) {
    tokens[r] = r == 0 ? next : config_.draft_noise_token;
    positions[r] = state_.length() + r;
  }
  FillRotation(*model_.window_rope_, {positions, static_cast<size_t>(rows_)}, rotation_);
  Embed(tokens);
  for (int stage = 0; stage < config_.num_draft_stages; ++stage) RunStage(stage);

  bf16* x = FinalNorm(h_, pre_, rows_, draft.norm);
  out.logits.resize(rows_ * config_.vocab_size);
  kernels_.Multiply(
      pool_, kernels::MakeGemm(kernels::RowsView{x, rows_, hidden, hidden}, model_.weights_->head,
                               out.logits.data(), config_.vocab_size));
  Observe("", "logits_before_markov", DType::kF32, {rows_, config_.vocab_size}, out.logits.data());
  // FinalNorm left the collapsed rows, which the confidence head reads.
  Correct(next, workspace_.Get<bf16>(Slot::kCollapsed, rows_ * hidden), out);
}

void DraftPass::RunStage(int stage) {
  const BlockWeights& block = model_.weights_->draft.stages[stage];
  const int64_t window = config_.sliding_window, hidden = config_.hidden_size;
  Observe(block.name, "x_in", DType::kBF16, {rows_, config_.hc_mult, hidden}, h_);
  Observe(block.name, "pre_in", DType::kF32, {rows_, config_.hc_mult}, pre_);
  bf16* x = SublayerInput(pre_, block.attn_norm);
  const Q8Rows quantized = QuantizeInput(x);
  Mixes(block, block.attn_mhc, "attn",
        workspace_.Get<float>(Slot::kAttnPre, rows_ * config_.hc_mult));
  Observe(block.name, "attn_in", DType::kBF16, {rows_, hidden}, x);
  WindowKv(block, quantized, rotation_, true, records_);

  // Every row sees the last window's positions, ordered as in a ring of just the window (position
  // mod window), and the whole block: "positions" of this view are places in that ring, then rows
  // of the block.
  const int64_t context = std::min(window, state_.length()), bytes = config_.window_entry_bytes();
  auto* ring = workspace_.Get<uint8_t>(Slot::kDraftRecords, window * bytes);
  for (int64_t p = state_.length() - context; p < state_.length(); ++p) {
    std::memcpy(ring + p % window * bytes, state_.WindowRecord(config_.num_layers + stage, p),
                bytes);
  }
  const WindowView view{ring, window, records_, context, bytes};
  auto* lists = workspace_.Get<AttentionQuery>(Slot::kQueryLists, rows_);
  for (int64_t r = 0; r < rows_; ++r) {
    lists[r] = AttentionQuery{.window = &view,
                              .window_begin = 0,
                              .window_end = context + rows_,
                              .window_slots = context + rows_};
  }
  bf16* q = Queries(block, QueryLatent(block, quantized, true), rotation_);
  AddSublayer(AttendAndProject(block, q, lists, rotation_));
  Observe(block.name, "x_mid", DType::kBF16, {rows_, config_.hc_mult, hidden}, h_);
  FeedForward(block, nullptr);
  Observe(block.name, "x_out", DType::kBF16, {rows_, config_.hc_mult, hidden}, h_);
  Observe(block.name, "pre_out", DType::kF32, {rows_, config_.hc_mult}, pre_);
}

// Markov correction, token by token, and the confidence of each draft.
void DraftPass::Correct(int32_t next, const bf16* collapsed, DraftResult& out) {
  const DraftWeights& draft = model_.weights_->draft;
  const int64_t vocab = config_.vocab_size, rank = config_.draft_markov_rank;
  const int64_t hidden = config_.hidden_size;
  out.tokens.clear();
  out.confidence.clear();
  auto* correction = workspace_.Get<float>(Slot::kMarkov, vocab);
  auto* features = workspace_.Get<bf16>(Slot::kHeadIn, hidden + rank);
  int32_t previous = next;
  for (int64_t i = 0; i < rows_; ++i) {
    const bf16* embedding = draft.markov_embed.values + previous * rank;
    kernels_.Multiply(pool_, kernels::MakeGemm(kernels::RowsView{embedding, 1, rank, rank},
                                               draft.markov_head, correction, vocab));
    float* logits = out.logits.data() + i * vocab;
    for (int64_t v = 0; v < vocab; ++v) logits[v] += correction[v];
    std::copy_n(collapsed + i * hidden, hidden, features);
    std::copy_n(embedding, rank, features + hidden);
    float confidence = 0;
    kernels_.Multiply(
        pool_, kernels::MakeGemm(kernels::RowsView{features, 1, hidden + rank, hidden + rank},
                                 draft.confidence, &confidence, 1));
    previous = static_cast<int32_t>(std::max_element(logits, logits + vocab) - logits);
    out.tokens.push_back(previous);
    out.confidence.push_back(confidence);
  }
  Observe("", "draft_logits", DType::kF32, {rows_, vocab}, out.logits.data());
}

}  // namespace deepinfer::model::v41
