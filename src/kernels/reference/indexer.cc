// Compressor pooling, index scores, candidate blocks and selection. Source: spec sections 2.5.4,
// 2.5.5. Ties go to the lowest entry number everywhere.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/math.h"
#include "kernels/reference/decode.h"
#include "kernels/reference/exact_dot.h"
#include "kernels/reference/kernels.h"
#include "kernels/reference/lanes.h"

namespace deepinfer::kernels::reference {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// Keys expanded together and scored for all heads.
constexpr int64_t kKeyTile = 32;

DEEPINFER_MULTIVERSION void DecodeIndexKey(const uint8_t* record, int64_t dim, float* out) {
  const uint8_t* scales = record + dim / 2;
  DecodeE2M1<kGroup>(record, dim, [scales](int64_t g) { return ScaleOf(scales[g]); }, out);
}

// Scores of keys [begin, end) for the queries [first, last): every key is expanded once for all.
void ScoreTile(const IndexScoreArgs& args, int64_t first, int64_t last, int64_t begin,
               int64_t end) {
  float* keys = Scratch(0, kKeyTile * args.dim);
  float* q = Scratch(1, args.dim);
  for (int64_t j = begin; j < end; ++j) {
    DecodeIndexKey(args.keys.entry(j), args.dim, keys + (j - begin) * args.dim);
  }
  for (int64_t i = first; i < last; ++i) {
    float* scores = args.scores + i * args.stride + begin;
    const int64_t count = std::min(end, args.visible[i]) - begin;
    for (int64_t j = std::max<int64_t>(count, 0); j < end - begin; ++j) scores[j] = kNever;
    if (count <= 0) continue;
    std::fill_n(scores, count, 0.0f);
    for (int64_t h = 0; h < args.heads; ++h) {
      const int64_t row = i * args.heads + h;
      for (int64_t d = 0; d < args.dim; ++d) q[d] = ToFloat(args.q[row * args.dim + d]);
      float dots[kKeyTile];
      ExactDots(q, keys, count, args.dim, args.dim, dots);
      const float weight = ToFloat(args.head_weights[row]);
      for (int64_t j = 0; j < count; ++j) scores[j] += std::max(dots[j], 0.0f) * weight;
    }
  }
}

// True when entry a comes before entry b: higher score, then lower number.
struct ByScore {
  const float* scores;
  bool operator()(int32_t a, int32_t b) const {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  }
};

void CandidateRow(const CandidateArgs& args, int64_t i) {
  const float* scores = args.scores + i * args.stride;
  uint8_t* mask = args.mask + i * args.mask_stride;
  const int64_t visible = args.visible[i];
  const int64_t blocks = CeilDiv(visible, args.block_size);
  std::fill_n(mask, args.mask_stride, uint8_t{0});
  if (blocks == 0) return;
  thread_local std::vector<float> best;
  thread_local std::vector<int32_t> order;
  best.assign(blocks, kNever);
  order.clear();
  for (int64_t j = 0; j < visible; ++j) {
    float& top = best[j / args.block_size];
    top = std::max(top, scores[j]);
  }
  // The newest entries are always candidates.
  best[blocks - 1] = std::numeric_limits<float>::infinity();
  for (int64_t b = 0; b < blocks; ++b) {
    if (best[b] > kNever) order.push_back(static_cast<int32_t>(b));
  }
  const auto keep = std::min<int64_t>(args.top_blocks, static_cast<int64_t>(order.size()));
  std::nth_element(order.begin(), order.begin() + keep, order.end(), ByScore{best.data()});
  for (int64_t k = 0; k < keep; ++k) mask[order[k]] = 1;
}

void SelectRow(const SelectArgs& args, int64_t i) {
  float* scores = args.scores + i * args.stride;
  const uint8_t* mask = args.mask == nullptr ? nullptr : args.mask + i * args.mask_stride;
  int32_t* selected = args.selected + i * args.topk;
  thread_local std::vector<int32_t> order;
  order.clear();
  for (int64_t j = 0; j < args.visible[i]; ++j) {
    if (mask != nullptr && mask[j / args.mask_block_size] == 0) scores[j] = kNever;
    if (scores[j] > kNever) order.push_back(static_cast<int32_t>(j));
  }
  const auto keep = std::min<int64_t>(args.topk, static_cast<int64_t>(order.size()));
  std::nth_element(order.begin(), order.begin() + keep, order.end(), ByScore{scores});
  std::sort(order.begin(), order.begin() + keep);
  std::copy_n(order.begin(), keep, selected);
  std::fill(selected + keep, selected + args.topk, -1);
  args.selected_count[i] = keep;
}

DEEPINFER_MULTIVERSION void PoolGroup(const float* k, const float* g, int64_t dim, bf16* out) {
  for (int64_t d = 0; d < dim; ++d) {
    const float g0 = g[d], g1 = g[dim + d], top = std::max(g0, g1);
    const float e0 = Exp(g0 - top), e1 = Exp(g1 - top), sum = e0 + e1;
    out[d] = ToBf16(k[d] * (e0 / sum) + k[dim + d] * (e1 / sum));
  }
}

}  // namespace

void PoolPairs(ThreadPool& pool, const float* k, const float* g, int64_t groups, int64_t dim,
               bf16* out) {
  pool.ParallelFor(groups, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t j = begin; j < end; ++j) {
      PoolGroup(k + 2 * j * dim, g + 2 * j * dim, dim, out + j * dim);
    }
  });
}

void ScaleBf16(ThreadPool&, bf16* w, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i) w[i] = ToBf16(ToFloat(w[i]) * factor);
}

void IndexScores(ThreadPool& pool, const IndexScoreArgs& args) {
  int64_t entries = 0;
  for (int64_t i = 0; i < args.queries; ++i) entries = std::max(entries, args.visible[i]);
  const int64_t tiles = CeilDiv(entries, kKeyTile);
  pool.ParallelFor(tiles, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      ScoreTile(args, 0, args.queries, t * kKeyTile, std::min(entries, (t + 1) * kKeyTile));
    }
  });
}

void Candidates(ThreadPool& pool, const CandidateArgs& args) {
  pool.ParallelFor(args.queries, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) CandidateRow(args, i);
  });
}

void Select(ThreadPool& pool, const SelectArgs& args) {
  pool.ParallelFor(args.queries, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) SelectRow(args, i);
  });
}

}  // namespace deepinfer::kernels::reference
