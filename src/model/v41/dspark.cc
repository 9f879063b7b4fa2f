// DSpark: filling the draft rings from the trunk's taps, and drafting blocks.
// Source: spec model-v41 section 6.
#include <algorithm>
#include <cstring>

#include "model/v41/draft_pass.h"
#include "model/v41/forward_pass.h"
#include "model/v41/rope_table.h"

namespace deepinfer::model::v41 {

using kernels::AttentionQuery;
using kernels::MakeGemm;
using kernels::Q8Rows;
using kernels::RowsView;
using kernels::WindowView;

namespace {

// Sequences whose logits are held at once; it bounds their memory, no result depends on it.
constexpr int64_t kGroupSequences = 32;

}  // namespace

// Context KV of every accepted position, for each stage: no norm and no mHC on this path. Only the
// positions that the rings keep are computed, all sequences as one batch: taps and rotations, which
// nobody reads after this, are compacted to their rows.
void ForwardPass::FillDraftRings() {
  const DraftWeights& draft = model_.weights_->draft;
  const int64_t hidden = config_.hidden_size, half = config_.rope_dim / 2;
  const int64_t width = hidden * std::ssize(config_.draft_target_layers);
  const int64_t bytes = config_.window_entry_bytes();
  Observe("", "taps", DType::kBF16, {rows_, width}, taps_);
  const auto kept_rows = [](const Segment& segment) {
    return segment.state->with_draft() ? std::min(segment.rows, segment.state->layout().ring_slots)
                                       : 0;
  };
  int64_t count = 0;
  for (const Segment& segment : segments_) {
    const int64_t kept = kept_rows(segment), from = segment.row + segment.rows - kept;
    const auto move = [&](auto* rows, int64_t row_width) {
      if (from == count) return;
      std::memmove(rows + count * row_width, rows + from * row_width,
                   kept * row_width * sizeof(*rows));
    };
    move(taps_, width);
    move(window_.cos, half);
    move(window_.sin, half);
    count += kept;
  }
  if (count == 0) return;
  const Q8Rows taps = Quantize({taps_, count, width, width}, Slot::kTapCodes, Slot::kTapScales);
  auto* m = workspace_.Get<bf16>(Slot::kMainOut, count * hidden);
  kernels_.Multiply(pool_, MakeGemm(taps, draft.main_proj, m, hidden));
  kernels_.rms_norm(pool_, {m, count, hidden, hidden}, draft.main_norm, config_.rms_norm_eps, m);
  Observe("", "main_x", DType::kBF16, {count, hidden}, m);
  const Q8Rows quantized =
      Quantize({m, count, hidden, hidden}, Slot::kMainCodes, Slot::kMainScales);
  auto* records = workspace_.Get<uint8_t>(Slot::kDraftRecords, count * bytes);
  for (size_t stage = 0; stage < draft.stages.size(); ++stage) {
    const int64_t ring = config_.num_layers + static_cast<int64_t>(stage);
    WindowKv(draft.stages[stage], quantized, window_, false, records);
    const uint8_t* record = records;
    for (const Segment& segment : segments_) {
      for (int64_t p = segment.end() - kept_rows(segment); p < segment.end(); ++p) {
        std::memcpy(segment.state->WindowRecord(ring, p), record, bytes);
        record += bytes;
      }
    }
  }
}

void DraftPass::Run() {
  Start();
  for (int stage = 0; stage < config_.num_draft_stages; ++stage) RunStage(stage);
  const bf16* normed = FinalNorm(h_, pre_, rows_, model_.weights_->draft.norm);
  // FinalNorm left the collapsed rows, which the confidence head reads.
  const bf16* collapsed = workspace_.Get<bf16>(Slot::kCollapsed, rows_ * config_.hidden_size);
  for (int64_t i = 0; i < std::ssize(inputs_); i += kGroupSequences) {
    DraftGroup(i, std::min(kGroupSequences, std::ssize(inputs_) - i), collapsed, normed);
  }
}

void DraftPass::Start() {
  const int64_t half = config_.rope_dim / 2, count = std::ssize(inputs_);
  block_ = config_.draft_block_size;
  rows_ = count * block_;
  out_.counts.resize(count);
  out_.tokens.assign(rows_, -1);
  out_.confidence.assign(rows_, 0.0f);
  rotation_ = {workspace_.Get<float>(Slot::kWindowCos, rows_ * half),
               workspace_.Get<float>(Slot::kWindowSin, rows_ * half)};
  records_ = workspace_.Get<uint8_t>(Slot::kWindowRecords, rows_ * config_.window_entry_bytes());
  auto* tokens = workspace_.Get<int32_t>(Slot::kTokens, rows_);
  auto* positions = workspace_.Get<int64_t>(Slot::kPositions, rows_);
  for (int64_t r = 0; r < rows_; ++r) {
    const DraftInput& input = inputs_[r / block_];
    tokens[r] = r % block_ == 0 ? input.next : config_.draft_noise_token;
    positions[r] = input.state->length() + r % block_;
  }
  FillRotation(*model_.window_rope_, {positions, static_cast<size_t>(rows_)}, rotation_);
  Embed(tokens);
}

void DraftPass::RunStage(int stage) {
  const BlockWeights& block = model_.weights_->draft.stages[stage];
  const int64_t hidden = config_.hidden_size;
  Observe(block.name, "x_in", DType::kBF16, {rows_, config_.hc_mult, hidden}, h_);
  Observe(block.name, "pre_in", DType::kF32, {rows_, config_.hc_mult}, pre_);
  bf16* x = SublayerInput(pre_, block.attn_norm);
  const Q8Rows quantized = QuantizeInput(x);
  Mixes(block, block.attn_mhc, "attn",
        workspace_.Get<float>(Slot::kAttnPre, rows_ * config_.hc_mult));
  Observe(block.name, "attn_in", DType::kBF16, {rows_, hidden}, x);
  WindowKv(block, quantized, rotation_, true, records_);
  bf16* q = Queries(block, QueryLatent(block, quantized, true), rotation_);
  AddSublayer(AttendAndProject(block, q, BuildLists(stage), rotation_));
  Observe(block.name, "x_mid", DType::kBF16, {rows_, config_.hc_mult, hidden}, h_);
  FeedForward(block, nullptr);
  Observe(block.name, "x_out", DType::kBF16, {rows_, config_.hc_mult, hidden}, h_);
  Observe(block.name, "pre_out", DType::kF32, {rows_, config_.hc_mult}, pre_);
}

// Every row sees its sequence's last window of positions, ordered as in a ring of just the window
// (position mod window), and its whole block: "positions" of a view are places in that ring, then
// rows of the block.
const AttentionQuery* DraftPass::BuildLists(int stage) {
  const int64_t window = config_.sliding_window, bytes = config_.window_entry_bytes();
  const int64_t count = std::ssize(inputs_), ring = config_.num_layers + stage;
  auto* rings = workspace_.Get<uint8_t>(Slot::kDraftRecords, count * window * bytes);
  auto* views = workspace_.Get<WindowView>(Slot::kWindowViews, count);
  auto* lists = workspace_.Get<AttentionQuery>(Slot::kQueryLists, rows_);
  pool_.ParallelFor(count, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const SequenceState& state = *inputs_[i].state;
      const int64_t context = std::min(window, state.length());
      uint8_t* const copy = rings + i * window * bytes;
      for (int64_t p = state.length() - context; p < state.length(); ++p) {
        std::memcpy(copy + p % window * bytes, state.WindowRecord(ring, p), bytes);
      }
      views[i] = {copy, window, records_ + i * block_ * bytes, context, bytes};
      for (int64_t r = i * block_; r < (i + 1) * block_; ++r) {
        lists[r] = AttentionQuery{.window = &views[i],
                                  .window_begin = 0,
                                  .window_end = context + block_,
                                  .window_slots = context + block_};
      }
    }
  });
  return lists;
}

// Head, Markov correction and confidence of inputs [first, first + count).
void DraftPass::DraftGroup(int64_t first, int64_t count, const bf16* collapsed,
                           const bf16* normed) {
  const int64_t vocab = config_.vocab_size, hidden = config_.hidden_size;
  auto* head_rows = workspace_.Get<int32_t>(Slot::kDraftHeadRows, count * block_);
  auto* chain = workspace_.Get<ChainRow>(Slot::kDraftChain, count);
  int64_t rows = 0;
  for (int64_t i = first; i < first + count; ++i) {
    out_.counts[i] = inputs_[i].drafts;
    for (int64_t k = 0; k < inputs_[i].drafts; ++k) {
      head_rows[rows++] = static_cast<int32_t>(i * block_ + k);
    }
  }
  auto* logits = workspace_.Get<float>(Slot::kDraftLogits, rows * vocab);
  kernels::GemmItem head =
      MakeGemm(RowsView{normed, rows_, hidden, hidden}, model_.weights_->head, logits, vocab);
  head.gather = head_rows;
  head.gather_rows = rows;
  kernels_.Multiply(pool_, head);
  Observe("", "logits_before_markov", DType::kF32, {rows, vocab}, logits);
  for (int64_t step = 0; step < block_; ++step) {
    int64_t going_on = 0;
    float* row = logits + step * vocab;
    for (int64_t i = first; i < first + count; row += inputs_[i++].drafts * vocab) {
      if (step < out_.counts[i]) chain[going_on++] = {i, row};
    }
    if (going_on == 0) break;
    RunStep(step, {chain, static_cast<size_t>(going_on)}, collapsed);
  }
  Observe("", "draft_logits", DType::kF32, {rows, vocab}, logits);
}

// Draft `step` of every sequence whose chain goes on, and its confidence.
void DraftPass::RunStep(int64_t step, std::span<const ChainRow> chain, const bf16* collapsed) {
  const DraftWeights& draft = model_.weights_->draft;
  const int64_t vocab = config_.vocab_size, rank = config_.draft_markov_rank;
  const int64_t hidden = config_.hidden_size, width = hidden + rank, count = std::ssize(chain);
  auto* correction = workspace_.Get<float>(Slot::kMarkov, count * vocab);
  auto* features = workspace_.Get<bf16>(Slot::kDraftFeatures, count * width);
  auto* confidence = workspace_.Get<float>(Slot::kDraftConfidence, count);
  for (int64_t c = 0; c < count; ++c) {
    const int64_t row = chain[c].sequence * block_ + step;
    const int64_t previous = step == 0 ? inputs_[chain[c].sequence].next : out_.tokens[row - 1];
    std::copy_n(collapsed + row * hidden, hidden, features + c * width);
    std::copy_n(draft.markov_embed.values + previous * rank, rank, features + c * width + hidden);
  }
  const kernels::GemmItem items[] = {
      MakeGemm(RowsView{features + hidden, count, rank, width}, draft.markov_head, correction,
               vocab),
      MakeGemm(RowsView{features, count, width, width}, draft.confidence, confidence, 1)};
  kernels_.gemm(pool_, items, 2);
  pool_.ParallelFor(count, 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t sequence = chain[c].sequence, row = sequence * block_ + step;
      float* logits = chain[c].logits;
      for (int64_t v = 0; v < vocab; ++v) logits[v] += correction[c * vocab + v];
      const int32_t token = sampler_({.sequence = sequence,
                                      .step = step,
                                      .position = inputs_[sequence].state->length() + 1 + step,
                                      .logits = {logits, static_cast<size_t>(vocab)},
                                      .worker = worker});
      if (token < 0 || token >= vocab) {
        out_.counts[sequence] = step;
        continue;
      }
      out_.tokens[row] = token;
      out_.confidence[row] = confidence[c];
    }
  });
}

}  // namespace deepinfer::model::v41
