#include "model/v41/forward_pass.h"

#include <algorithm>
#include <cstring>

#include "model/v41/engram_hash.h"
#include "model/v41/rope_table.h"

namespace deepinfer::model::v41 {

using kernels::AttentionQuery;
using kernels::EntryBlocks;
using kernels::kGroup;
using kernels::Q8Rows;
using kernels::WindowView;

void ForwardPass::Run(std::span<const SequenceChunk> chunks, HeadOutput& head) {
  Start(chunks);
  for (int layer = 0; layer < config_.num_layers && rows_ > 0; ++layer) RunLayer(layer);
  if (taps_ != nullptr && rows_ > 0) FillDraftRings();
  Logits(head);
  Finish();
}

void ForwardPass::Start(std::span<const SequenceChunk> chunks) {
  segments_ = {workspace_.Get<Segment>(Slot::kSegments, std::ssize(chunks)), chunks.size()};
  bool any_image = false, any_draft = false;
  rows_ = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const SequenceChunk& chunk = chunks[i];
    OpenState(chunk);
    const int64_t rows = std::ssize(chunk.tokens), position = chunk.state->length();
    segments_[i] = Segment{.state = chunk.state,
                           .row = rows_,
                           .rows = rows,
                           .position = position,
                           .chunk_row = rows_,
                           .chunk_position = position,
                           .chunk_rows = rows,
                           .decoder_start = chunk.decoder_start,
                           .write_floor = chunk.write_floor,
                           .logits_rows = chunk.logits_rows};
    rows_ += rows;
    any_image = any_image || !chunk.is_image.empty();
    any_draft = any_draft || chunk.state->with_draft();
  }
  batch_rows_ = rows_;
  const int64_t half = config_.rope_dim / 2;
  positions_ = workspace_.Get<int64_t>(Slot::kPositions, rows_);
  image_rows_ = any_image ? workspace_.Get<uint8_t>(Slot::kImageRows, rows_) : nullptr;
  window_ = {workspace_.Get<float>(Slot::kWindowCos, rows_ * half),
             workspace_.Get<float>(Slot::kWindowSin, rows_ * half)};
  compressed_ = {workspace_.Get<float>(Slot::kCompressedCos, rows_ * half),
                 workspace_.Get<float>(Slot::kCompressedSin, rows_ * half)};
  window_records_ =
      workspace_.Get<uint8_t>(Slot::kWindowRecords, rows_ * config_.window_entry_bytes());
  taps_ = any_draft ? workspace_.Get<bf16>(Slot::kTaps, rows_ * config_.hidden_size *
                                                            std::ssize(config_.draft_target_layers))
                    : nullptr;
  auto* tokens = workspace_.Get<int32_t>(Slot::kTokens, rows_);
  compressed_tokens_ = workspace_.Get<int32_t>(Slot::kCompressedTokens, rows_);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const Segment& segment = segments_[i];
    std::copy(chunks[i].tokens.begin(), chunks[i].tokens.end(), tokens + segment.row);
    if (any_image) {
      std::fill_n(image_rows_ + segment.row, segment.rows, uint8_t{0});
      std::copy(chunks[i].is_image.begin(), chunks[i].is_image.end(), image_rows_ + segment.row);
    }
    for (int64_t r = segment.row; r < segment.row + segment.rows; ++r) {
      positions_[r] = segment.position + r - segment.row;
      if (!config_.engram_layers.empty()) {
        const bool dead = any_image && image_rows_[r] != 0;
        compressed_tokens_[r] = dead ? kDeadToken : model_.engram_hash_->Compress(tokens[r]);
      }
    }
  }
  FillRotation(*model_.window_rope_, {positions_, static_cast<size_t>(rows_)}, window_);
  FillRotation(*model_.compressed_rope_, {positions_, static_cast<size_t>(rows_)}, compressed_);
  Embed(tokens);
}

// A state that starts at replay_start, and blocks for the chunk.
void ForwardPass::OpenState(const SequenceChunk& chunk) const {
  SequenceState& state = *chunk.state;
  if (state.length() == 0 && chunk.replay_start > 0) {
    state.StartAt(chunk.replay_start);
    const auto lookback =
        config_.engram_layers.empty() ? std::span<const int32_t>() : chunk.lookback;
    int64_t position = chunk.replay_start - std::ssize(lookback);
    for (const int32_t token : lookback) {
      state.History(position++) = token < 0 ? kDeadToken : model_.engram_hash_->Compress(token);
    }
  }
  state.Reserve(state.length() + std::ssize(chunk.tokens));
}

// Spec 2.2, with the KV projections first: they are all that rows before decoder_start still need
// at the decoder's first layer.
void ForwardPass::RunLayer(int layer) {
  const BlockWeights& block = model_.weights_->layers[layer];
  const LayerRole& role = config_.roles[layer];
  const int64_t streams = config_.hc_mult, hidden = config_.hidden_size;
  if (role.engram >= 0) Engram(layer);
  Observe(block.name, "x_in", DType::kBF16, {rows_, streams, hidden}, h_);
  Observe(block.name, "pre_in", DType::kF32, {rows_, streams}, pre_);
  if (role.tap >= 0 && taps_ != nullptr) RecordTap(layer);

  bf16* x = SublayerInput(pre_, block.attn_norm);
  Q8Rows quantized = QuantizeInput(x);
  // At the decoder's first layer fewer rows than here go on to the query.
  const bool query_too = layer != config_.decoder_layer;
  WindowKv(block, quantized, RotationOf(layer), query_too, window_records_);
  if (role.owns_kv) Compress(layer, x);
  if (layer == config_.decoder_layer) StopEncoderRows(quantized, x);
  if (rows_ > 0) {
    auto* attn_pre = workspace_.Get<float>(Slot::kAttnPre, rows_ * streams);
    Mixes(block, block.attn_mhc, "attn", attn_pre);
    Observe(block.name, "attn_in", DType::kBF16, {rows_, hidden}, x);
    AddSublayer(Attention(layer, quantized, x));
    Observe(block.name, "x_mid", DType::kBF16, {rows_, streams, hidden}, h_);
    FeedForward(block, image_rows_);
  }
  CommitWindows(layer);
}

bf16* ForwardPass::Attention(int layer, const Q8Rows& x, const bf16* attn_in) {
  const BlockWeights& block = model_.weights_->layers[layer];
  const Q8Rows latent = QueryLatent(block, x, layer != config_.decoder_layer);
  if (config_.roles[layer].owns_index) SelectEntries(layer, latent, attn_in);
  bf16* q = Queries(block, latent, RotationOf(layer));
  return AttendAndProject(block, q, BuildLists(layer), RotationOf(layer));
}

const AttentionQuery* ForwardPass::BuildLists(int layer) {
  const LayerRole& role = config_.roles[layer];
  const int64_t window = config_.sliding_window;
  const int64_t slots = probe_ == nullptr ? window : probe_->WindowSlots(window);
  auto* lists = workspace_.Get<AttentionQuery>(Slot::kQueryLists, rows_);
  auto* views = workspace_.Get<WindowView>(Slot::kWindowViews, std::ssize(segments_));
  auto* entries = workspace_.Get<EntryBlocks>(Slot::kEntryViews, std::ssize(segments_));
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    const int64_t bytes = config_.window_entry_bytes();
    const ChunkRecords records = RecordsOf(layer, segment);
    views[i] = {segment.state->Ring(layer), segment.state->layout().ring_slots,
                window_records_ + records.row * bytes, records.position, bytes};
    if (role.ratio > 0) entries[i] = KvEntries(segment, role.kv_source);
    const int64_t first_valid = FirstValid(layer, segment);
    for (int64_t r = segment.row; r < segment.row + segment.rows; ++r) {
      const int64_t position = positions_[r];
      lists[r] = {.window = &views[i],
                  .window_begin = std::max(first_valid, position - window + 1),
                  .window_end = position + 1,
                  .window_slots = slots,
                  .entries = role.ratio > 0 ? &entries[i] : nullptr,
                  .selected = role.ratio > 0 ? selected_ + r * config_.index_topk : nullptr,
                  .selected_count = role.ratio > 0 ? selected_count_[r] : 0};
    }
  }
  return lists;
}

// Drops the rows before decoder_start: every row-wise buffer still in use is compacted. Rows only
// move towards the front.
void ForwardPass::StopEncoderRows(Q8Rows& x, bf16* attn_in) {
  const int64_t hidden = config_.hidden_size, half = config_.rope_dim / 2;
  int64_t kept = 0;
  for (Segment& segment : segments_) {
    const int64_t skip =
        std::clamp<int64_t>(segment.decoder_start - segment.position, 0, segment.rows);
    const int64_t from = segment.row + skip, count = segment.rows - skip;
    const auto move = [&](auto* rows, int64_t width) {
      if (rows != nullptr && from != kept) {
        std::memmove(rows + kept * width, rows + from * width, count * width * sizeof(*rows));
      }
    };
    move(h_, config_.hc_mult * hidden);
    move(pre_, config_.hc_mult);
    move(attn_in, hidden);
    move(x.codes, hidden);
    move(x.scales, hidden / kGroup);
    move(positions_, 1);
    move(image_rows_, 1);
    for (const Rotation& rotation : {window_, compressed_}) {
      move(rotation.cos, half);
      move(rotation.sin, half);
    }
    move(taps_, hidden * std::ssize(config_.draft_target_layers));
    segment.row = kept;
    segment.rows = count;
    segment.position += skip;
    kept += count;
  }
  rows_ = kept;
  x.rows = kept;
}

ForwardPass::ChunkRecords ForwardPass::RecordsOf(int layer, const Segment& segment) const {
  // Up to the decoder's first layer every row of the chunk wrote its KV.
  if (layer <= config_.decoder_layer) return {segment.chunk_row, segment.chunk_position};
  return {segment.row, segment.position};
}

int64_t ForwardPass::FirstValid(int layer, const Segment& segment) const {
  const SlotHeader& header = *segment.state->header_;
  // Layers behind the decoder's first have no window KV before decoder_start.
  return layer > config_.decoder_layer ? std::max(header.decoder_first_valid, segment.decoder_start)
                                       : header.first_valid;
}

void ForwardPass::CommitWindows(int layer) {
  const int64_t bytes = config_.window_entry_bytes();
  for (const Segment& segment : segments_) {
    const ChunkRecords records = RecordsOf(layer, segment);
    const uint8_t* first = window_records_ + records.row * bytes;
    const int64_t kept = segment.end() - segment.state->layout().ring_slots;
    for (int64_t p = std::max(records.position, kept); p < segment.end(); ++p) {
      std::memcpy(segment.state->WindowRecord(layer, p), first + (p - records.position) * bytes,
                  bytes);
    }
  }
}

void ForwardPass::RecordTap(int layer) {
  const int64_t hidden = config_.hidden_size;
  kernels_.stream_mean(pool_, h_, rows_, config_.hc_mult, hidden,
                       taps_ + config_.roles[layer].tap * hidden,
                       hidden * std::ssize(config_.draft_target_layers));
}

// Spec 2.1, step 4, for the rows that want logits.
void ForwardPass::Logits(HeadOutput& head) {
  const int64_t streams = config_.hc_mult, hidden = config_.hidden_size;
  const int64_t vocab = config_.vocab_size;
  Observe("layers." + std::to_string(config_.num_layers - 1), "x_out", DType::kBF16,
          {rows_, streams, hidden}, h_);
  Observe("layers." + std::to_string(config_.num_layers - 1), "pre_out", DType::kF32,
          {rows_, streams}, pre_);
  int64_t wanted = 0;
  for (const Segment& segment : segments_) {
    const int64_t from = segment.row + segment.rows - segment.logits_rows;
    if (from != wanted) {
      std::memmove(h_ + wanted * streams * hidden, h_ + from * streams * hidden,
                   segment.logits_rows * streams * hidden * sizeof(bf16));
      std::memmove(pre_ + wanted * streams, pre_ + from * streams,
                   segment.logits_rows * streams * sizeof(float));
    }
    wanted += segment.logits_rows;
  }
  head.logits.resize(wanted * (head.topk == 0 ? vocab : head.topk));
  head.ids.resize(wanted * head.topk);
  if (wanted == 0) return;
  bf16* x = FinalNorm(h_, pre_, wanted, model_.weights_->norm);
  Observe("", "final_normed", DType::kBF16, {wanted, hidden}, x);
  const kernels::RowsView rows{x, wanted, hidden, hidden};
  if (head.topk > 0) {
    kernels_.top_logits(pool_, {.x = rows,
                                .w = model_.weights_->head,
                                .topk = head.topk,
                                .ids = head.ids.data(),
                                .logits = head.logits.data()});
    return;
  }
  kernels_.Multiply(pool_,
                    kernels::MakeGemm(rows, model_.weights_->head, head.logits.data(), vocab));
  Observe("", "logits", DType::kF32, {wanted, vocab}, head.logits.data());
}

// Advances the states: Engram history, what the decoder's windows begin with, length.
void ForwardPass::Finish() {
  for (const Segment& segment : segments_) {
    SequenceState& state = *segment.state;
    const int64_t kept = segment.end() - state.layout().history_slots;
    for (int64_t p = std::max(segment.chunk_position, kept); p < segment.end(); ++p) {
      state.History(p) = compressed_tokens_[segment.chunk_row + p - segment.chunk_position];
    }
    // Not beyond the end: a snapshot taken here may go on with a prompt whose decoder starts before
    // this one's.
    state.header_->decoder_first_valid = std::max(state.header_->decoder_first_valid,
                                                  std::min(segment.decoder_start, segment.end()));
    state.Advance(segment.end());
  }
}

int64_t ForwardPass::SourceIndex(int layer) const {
  const auto& sources = config_.kv_source_layers;
  return std::find(sources.begin(), sources.end(), layer) - sources.begin();
}

EntryBlocks ForwardPass::KvEntries(const Segment& segment, int layer) const {
  const CacheLayout& layout = segment.state->layout();
  const KvSourceLayout& source = layout.sources[SourceIndex(layer)];
  return {segment.state->blocks_.data(), source.entries_per_block, layout.kv_bytes,
          source.kv_offset};
}

EntryBlocks ForwardPass::IndexKeys(const Segment& segment, int layer) const {
  const CacheLayout& layout = segment.state->layout();
  const KvSourceLayout& source = layout.sources[SourceIndex(layer)];
  return {segment.state->blocks_.data(), source.entries_per_block, layout.index_bytes,
          source.index_offset};
}

}  // namespace deepinfer::model::v41
