// Compressor of a KV source: latents, compressed KV entries and index keys. Source: spec model-v41
// sections 2.5.4, 2.5.5.
#include <algorithm>
#include <cstring>

#include "model/v41/forward_pass.h"
#include "model/v41/record_view.h"
#include "model/v41/rope_table.h"

namespace deepinfer::model::v41 {

namespace {

// Completed groups of one segment: entries [first, first + count), of which the leading `dropped`
// end below the write floor.
struct Groups {
  int64_t first = 0, count = 0, dropped = 0;
};

Groups NewGroups(const Segment& segment, int ratio) {
  const int64_t first = segment.chunk_position / ratio;
  const int64_t count = segment.end() / ratio - first;
  return {first, count, std::clamp<int64_t>(segment.write_floor / ratio - first, 0, count)};
}

// Compacts latents [groups, dim] of all segments to those that are written; returns their number.
int64_t DropGroups(std::span<const Segment> segments, int ratio, int64_t dim, bf16* latent) {
  int64_t from = 0, kept = 0;
  for (const Segment& segment : segments) {
    const Groups groups = NewGroups(segment, ratio);
    const int64_t count = groups.count - groups.dropped;
    if (from + groups.dropped != kept) {
      std::memmove(latent + kept * dim, latent + (from + groups.dropped) * dim,
                   count * dim * sizeof(bf16));
    }
    from += groups.count;
    kept += count;
  }
  return kept;
}

}  // namespace

void ForwardPass::Compress(int layer, const bf16* x) {
  const BlockWeights& block = model_.weights_->layers[layer];
  const CompressorWeights& weights = block.compressor;
  const int ratio = config_.roles[layer].ratio;
  const int64_t dim = config_.head_dim, index_dim = config_.index_head_dim;
  const int64_t half = config_.rope_dim / 2;
  const float eps = config_.rms_norm_eps;

  // Latents of the groups that this batch completes, segment after segment.
  auto* latent = workspace_.Get<bf16>(Slot::kLatent, rows_ * dim);
  if (ratio == 1) {
    kernels_.Multiply(pool_, kernels::MakeGemm(kernels::RowsView{x, rows_, config_.hidden_size,
                                                                 config_.hidden_size},
                                               weights.wkv, latent, dim));
  } else {
    PoolGroups(layer, x, latent);
  }
  const int64_t groups = DropGroups(segments_, ratio, dim, latent);
  if (groups == 0) return;
  kernels_.rms_norm(pool_, {latent, groups, dim, dim}, weights.norm, eps, latent);
  Observe(block.name, "latent", DType::kBF16, {groups, dim}, latent);

  // Entries turn by the position of their group's first token.
  auto* positions = workspace_.Get<int64_t>(Slot::kGroupPositions, groups);
  auto** kv_out = workspace_.Get<uint8_t*>(Slot::kRecordPointers, 2 * groups);
  auto** index_out = kv_out + groups;
  const int64_t source = SourceIndex(layer);
  int64_t g = 0;
  for (const Segment& segment : segments_) {
    const Groups fresh = NewGroups(segment, ratio);
    for (int64_t j = fresh.first + fresh.dropped; j < fresh.first + fresh.count; ++j, ++g) {
      positions[g] = j * ratio;
      kv_out[g] = segment.state->KvEntry(source, j);
      index_out[g] = segment.state->IndexKey(source, j);
    }
  }
  const Rotation rotation{workspace_.Get<float>(Slot::kGroupCos, groups * half),
                          workspace_.Get<float>(Slot::kGroupSin, groups * half)};
  FillRotation(*model_.compressed_rope_, {positions, static_cast<size_t>(groups)}, rotation);

  // Index keys come from the latent before it is rotated.
  auto* key = workspace_.Get<bf16>(Slot::kIndexKey, groups * index_dim);
  kernels_.Multiply(pool_, kernels::MakeGemm(kernels::RowsView{latent, groups, dim, dim},
                                             weights.index_wk, key, index_dim));
  kernels_.rms_norm(pool_, {key, groups, index_dim, index_dim}, weights.index_k_norm, eps, key);
  kernels_.rope(pool_, key, groups, 1, index_dim, config_.rope_dim, rotation.cos, rotation.sin,
                false);
  kernels_.pack_index_key(pool_, key, groups, index_dim, index_out);
  kernels_.rope(pool_, latent, groups, 1, dim, config_.rope_dim, rotation.cos, rotation.sin, false);
  kernels_.pack_kv(pool_, latent, groups, dim, kv_out);
  if (probe_ != nullptr) {
    UnpackIndexKeys(index_out, groups, index_dim, key);
    Observe(block.name, "index_k", DType::kBF16, {groups, index_dim}, key);
    UnpackKvEntries(kv_out, groups, dim, latent);
    Observe(block.name, "compress_kv", DType::kBF16, {groups, dim}, latent);
  }
}

// Ratio 2: fp32 keys and gates of all rows, an open group of an earlier chunk put before them. The
// first tokens of the last groups are kept: one may be open now, or after a rollback.
void ForwardPass::PoolGroups(int layer, const bf16* x, bf16* latent) {
  const CompressorWeights& weights = model_.weights_->layers[layer].compressor;
  const int64_t dim = config_.head_dim, hidden = config_.hidden_size;
  auto* k = workspace_.Get<float>(Slot::kCompressorK, rows_ * dim);
  auto* g = workspace_.Get<float>(Slot::kCompressorG, rows_ * dim);
  kernels_.Multiply(
      pool_, kernels::MakeGemm(kernels::RowsView{x, rows_, hidden, hidden}, weights.wkv, k, dim));
  kernels_.Multiply(
      pool_, kernels::MakeGemm(kernels::RowsView{x, rows_, hidden, hidden}, weights.wgate, g, dim));

  const int64_t capacity = rows_ + std::ssize(segments_);
  auto* pairs_k = workspace_.Get<float>(Slot::kPairsK, capacity * dim);
  auto* pairs_g = workspace_.Get<float>(Slot::kPairsG, capacity * dim);
  const int64_t source = SourceIndex(layer);
  int64_t filled = 0;
  for (const Segment& segment : segments_) {
    const SequenceState& state = *segment.state;
    const float* first_k = k + segment.chunk_row * dim;
    const float* first_g = g + segment.chunk_row * dim;
    const int64_t start = segment.chunk_position, end = segment.end();
    if (start % 2 == 1) {
      const float* tail = state.Tail(source, start - 1);
      std::copy_n(tail, dim, pairs_k + filled * dim);
      std::copy_n(tail + dim, dim, pairs_g + filled * dim);
      ++filled;
    }
    // A single token that closes nothing is only kept.
    const int64_t whole = segment.chunk_rows - end % 2;
    std::copy_n(first_k, whole * dim, pairs_k + filled * dim);
    std::copy_n(first_g, whole * dim, pairs_g + filled * dim);
    filled += whole;
    const int64_t kept = std::max(start, end - 2 * state.layout().tail_slots);
    for (int64_t p = kept + kept % 2; p < end; p += 2) {
      float* tail = state.Tail(source, p);
      std::copy_n(first_k + (p - start) * dim, dim, tail);
      std::copy_n(first_g + (p - start) * dim, dim, tail + dim);
    }
  }
  kernels_.pool_pairs(pool_, pairs_k, pairs_g, filled / 2, dim, latent);
}

}  // namespace deepinfer::model::v41
