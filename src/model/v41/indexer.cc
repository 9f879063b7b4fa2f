// Lightning indexer: scores of the compressed entries, candidate blocks, the selection list.
// Source: spec model-v41 section 2.5.5.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "model/v41/forward_pass.h"

namespace deepinfer::model::v41 {

using kernels::BlockLists;
using kernels::CeilDiv;
using kernels::EntryBlocks;
using kernels::Q8Rows;

namespace {
// Scores held at a time (1 MiB): query rows are taken in groups, so that scratch memory does not
// grow with the context until one row alone is longer.
constexpr int64_t kScoreBudget = int64_t{1} << 18;
}  // namespace

void ForwardPass::SelectEntries(int layer, const Q8Rows& latent, const bf16* attn_in) {
  const BlockWeights& block = model_.weights_->layers[layer];
  const int64_t heads = config_.index_heads, dim = config_.index_head_dim;
  const int64_t hidden = config_.hidden_size, ratio = config_.roles[layer].ratio;
  auto* visible = workspace_.Get<int64_t>(Slot::kVisible, rows_);
  int64_t most_visible = 0;
  for (int64_t r = 0; r < rows_; ++r) {
    visible[r] = (positions_[r] + 1) / ratio;
    most_visible = std::max(most_visible, visible[r]);
  }
  selected_ = workspace_.Get<int32_t>(Slot::kSelected, rows_ * config_.index_topk);
  selected_count_ = workspace_.Get<int64_t>(Slot::kSelectedCount, rows_);
  if (probe_ == nullptr && most_visible <= config_.index_topk) return SelectAll(visible);

  auto* q = workspace_.Get<bf16>(Slot::kIndexQuery, rows_ * heads * dim);
  auto* weights = workspace_.Get<bf16>(Slot::kIndexWeights, rows_ * heads);
  kernels_.Multiply(pool_, kernels::MakeGemm(latent, block.indexer.wq_b, q, heads * dim));
  kernels_.rope(pool_, q, rows_, heads, dim, config_.rope_dim, compressed_.cos, compressed_.sin,
                false);
  kernels_.round_q4u(pool_, q, rows_, heads * dim);
  Observe(block.name, "index_q", DType::kBF16, {rows_, heads, dim}, q);
  kernels_.Multiply(pool_, kernels::MakeGemm(kernels::RowsView{attn_in, rows_, hidden, hidden},
                                             block.indexer.weights_proj, weights, heads));
  const double factor = 1.0 / std::sqrt(static_cast<double>(dim) * static_cast<double>(heads));
  kernels_.scale_bf16(pool_, weights, rows_ * heads, static_cast<float>(factor));
  Observe(block.name, "index_weights", DType::kBF16, {rows_, heads}, weights);
  if (config_.roles[layer].makes_candidates) {
    candidate_blocks_ =
        workspace_.Get<int32_t>(Slot::kCandidateBlocks, rows_ * config_.candidate_topk_blocks);
    candidate_count_ = workspace_.Get<int64_t>(Slot::kCandidateCount, rows_);
  }
  for (const Segment& segment : segments_) SelectSegment(layer, segment, q, weights, visible);
  ObserveSelection(block, visible, most_visible);
}

// While no row sees more entries than a list holds, scores decide nothing.
void ForwardPass::SelectAll(const int64_t* visible) {
  for (int64_t r = 0; r < rows_; ++r) {
    int32_t* selected = selected_ + r * config_.index_topk;
    std::iota(selected, selected + visible[r], 0);
    selected_count_[r] = visible[r];
  }
}

BlockLists ForwardPass::CandidatesOf(int64_t row) const {
  return {candidate_blocks_ + row * config_.candidate_topk_blocks, candidate_count_ + row,
          config_.candidate_topk_blocks, config_.candidate_block_size};
}

void ForwardPass::SelectSegment(int layer, const Segment& segment, const bf16* q,
                                const bf16* weights, const int64_t* visible) {
  const LayerRole& role = config_.roles[layer];
  const int64_t heads = config_.index_heads, width = heads * config_.index_head_dim;
  const EntryBlocks keys = IndexKeys(segment, role.kv_source);
  const int64_t entries = segment.end() / role.ratio;
  const int64_t blocks = CeilDiv(entries, config_.candidate_block_size);
  // While every block is a candidate there is nothing to restrict, and rows can share keys.
  const bool restricted = probe_ != nullptr || blocks > config_.candidate_topk_blocks;
  const bool use_candidates = role.uses_candidates && restricted;
  const int64_t columns = use_candidates ? std::min(blocks, config_.candidate_topk_blocks) *
                                               config_.candidate_block_size
                                         : entries;
  const int64_t stride = std::max<int64_t>(1, columns);
  // A probe sees the scores of all rows at once.
  const int64_t group =
      probe_ != nullptr ? segment.rows : std::max<int64_t>(1, kScoreBudget / stride);
  const int64_t last = segment.row + segment.rows;
  for (int64_t row = segment.row; row < last; row += group) {
    const int64_t rows = std::min(group, last - row);
    auto* scores = workspace_.Get<float>(Slot::kIndexScores, std::max(kScoreBudget, rows * stride));
    const BlockLists candidates = use_candidates ? CandidatesOf(row) : BlockLists{};
    kernels_.index_scores(pool_, {.queries = rows,
                                  .heads = heads,
                                  .dim = config_.index_head_dim,
                                  .q = q + row * width,
                                  .head_weights = weights + row * heads,
                                  .keys = keys,
                                  .visible = visible + row,
                                  .candidates = candidates,
                                  .scores = scores,
                                  .stride = stride});
    if (role.makes_candidates && restricted) {
      kernels_.candidates(pool_, {.queries = rows,
                                  .scores = scores,
                                  .visible = visible + row,
                                  .stride = stride,
                                  .block_size = config_.candidate_block_size,
                                  .top_blocks = config_.candidate_topk_blocks,
                                  .blocks = candidate_blocks_ + row * config_.candidate_topk_blocks,
                                  .block_count = candidate_count_ + row});
    }
    kernels_.select(pool_, {.queries = rows,
                            .scores = scores,
                            .visible = visible + row,
                            .candidates = candidates,
                            .stride = stride,
                            .topk = config_.index_topk,
                            .selected = selected_ + row * config_.index_topk,
                            .selected_count = selected_count_ + row});
    if (probe_ != nullptr) ObserveScores(layer, row, rows, scores, stride, entries);
  }
}

// Scores by entry: -infinity where an entry is no candidate.
void ForwardPass::ObserveScores(int layer, int64_t row, int64_t rows, const float* scores,
                                int64_t stride, int64_t entries) {
  const LayerRole& role = config_.roles[layer];
  const int64_t width = std::max<int64_t>(1, entries), size = config_.candidate_block_size;
  std::vector<float> shown(rows * width, -std::numeric_limits<float>::infinity());
  for (int64_t r = 0; r < rows; ++r) {
    if (!role.uses_candidates) {
      std::copy_n(scores + r * stride, entries, shown.begin() + r * width);
      continue;
    }
    const BlockLists lists = CandidatesOf(row + r);
    for (int64_t c = 0; c < lists.count[0] * size; ++c) {
      const int64_t entry = lists.blocks[c / size] * size + c % size;
      if (entry < entries) shown[r * width + entry] = scores[r * stride + c];
    }
  }
  Observe(model_.weights_->layers[layer].name, "index_score", DType::kF32, {rows, width},
          shown.data());
}

// The list as the captures hold it: [rows, min(topk, entries)], unused slots -1. A replaced list is
// taken over, without entries that a row cannot see.
void ForwardPass::ObserveSelection(const BlockWeights& block, const int64_t* visible,
                                   int64_t entries) {
  if (probe_ == nullptr) return;
  const int64_t topk = config_.index_topk, width = std::min(topk, entries);
  std::vector<int32_t> list(rows_ * width);
  for (int64_t r = 0; r < rows_; ++r) {
    std::copy_n(selected_ + r * topk, width, list.begin() + r * width);
  }
  Observe(block.name, "topk_idxs", DType::kI32, {rows_, width}, list.data());
  for (int64_t r = 0; r < rows_; ++r) {
    int64_t count = 0;
    for (int64_t i = 0; i < width; ++i) {
      const int32_t entry = list[r * width + i];
      if (entry >= 0 && entry < visible[r]) selected_[r * topk + count++] = entry;
    }
    selected_count_[r] = count;
  }
  if (candidate_blocks_ != nullptr) {
    std::vector<uint8_t> mask(rows_ * entries);
    for (int64_t r = 0; r < rows_; ++r) {
      const BlockLists lists = CandidatesOf(r);
      for (int64_t c = 0; c < lists.count[0]; ++c) {
        const int64_t first = lists.blocks[c] * lists.size;
        const int64_t end = std::min(entries, first + lists.size);
        std::fill(mask.begin() + r * entries + first, mask.begin() + r * entries + end, 1);
      }
    }
    Observe(block.name, "candidate_blocks", DType::kU8, {rows_, entries}, mask.data());
  }
}

}  // namespace deepinfer::model::v41
