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

int64_t EntryOfColumn(const BlockLists& lists, int64_t i, int64_t column) {
  if (lists.blocks == nullptr) return column;
  return lists.blocks[i * lists.stride + column / lists.size] * lists.size + column % lists.size;
}
int64_t ColumnsOf(const BlockLists& lists, int64_t i, int64_t visible) {
  return lists.blocks == nullptr ? visible : lists.count[i] * lists.size;
}

// Scores of `count` expanded keys with all heads of query i.
void ScoreKeys(const IndexScoreArgs& args, int64_t i, const float* keys, int64_t count,
               float* scores) {
  float* q = Scratch(1, args.dim);
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

// Columns [begin, end) of all queries: every key is expanded once for all.
void ScoreTile(const IndexScoreArgs& args, int64_t begin, int64_t end) {
  float* keys = Scratch(0, kKeyTile * args.dim);
  for (int64_t j = begin; j < end; ++j) {
    DecodeIndexKey(args.keys.entry(j), args.dim, keys + (j - begin) * args.dim);
  }
  for (int64_t i = 0; i < args.queries; ++i) {
    float* scores = args.scores + i * args.stride + begin;
    const int64_t count = std::max<int64_t>(0, std::min(end, args.visible[i]) - begin);
    ScoreKeys(args, i, keys, count, scores);
    std::fill(scores + count, scores + (end - begin), kNever);
  }
}

// The same of query i with candidates of its own.
void ScoreCandidates(const IndexScoreArgs& args, int64_t i, int64_t begin, int64_t end) {
  float* keys = Scratch(0, kKeyTile * args.dim);
  float* scores = args.scores + i * args.stride + begin;
  std::fill(scores, scores + (end - begin), kNever);
  const int64_t last = std::min(end, ColumnsOf(args.candidates, i, args.visible[i]));
  int64_t count = 0;
  for (int64_t column = begin; column < last; ++column) {
    const int64_t entry = EntryOfColumn(args.candidates, i, column);
    // Only the last entries of the last block can be invisible.
    if (entry >= args.visible[i]) break;
    DecodeIndexKey(args.keys.entry(entry), args.dim, keys + count++ * args.dim);
  }
  ScoreKeys(args, i, keys, count, scores);
}

// True when entry a comes before entry b: higher score, then lower number.
struct ByScore {
  const float* scores;
  bool operator()(int32_t a, int32_t b) const {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  }
};

// The `keep` best of the scores above -infinity, ascending by number.
void Best(const float* scores, int64_t count, int64_t keep, std::vector<int32_t>& order) {
  order.clear();
  for (int64_t j = 0; j < count; ++j) {
    if (scores[j] > kNever) order.push_back(static_cast<int32_t>(j));
  }
  const auto kept = std::min<int64_t>(keep, std::ssize(order));
  std::nth_element(order.begin(), order.begin() + kept, order.end(), ByScore{scores});
  order.resize(kept);
  std::sort(order.begin(), order.end());
}

void CandidateRow(const CandidateArgs& args, int64_t i) {
  const float* scores = args.scores + i * args.stride;
  const int64_t visible = args.visible[i];
  const int64_t blocks = CeilDiv(visible, args.block_size);
  args.block_count[i] = 0;
  if (blocks == 0) return;
  thread_local std::vector<float> best;
  thread_local std::vector<int32_t> order;
  best.assign(blocks, kNever);
  for (int64_t j = 0; j < visible; ++j) {
    float& top = best[j / args.block_size];
    top = std::max(top, scores[j]);
  }
  // The newest entries are always candidates.
  best[blocks - 1] = std::numeric_limits<float>::infinity();
  Best(best.data(), blocks, args.top_blocks, order);
  std::copy(order.begin(), order.end(), args.blocks + i * args.top_blocks);
  args.block_count[i] = std::ssize(order);
}

void SelectRow(const SelectArgs& args, int64_t i) {
  thread_local std::vector<int32_t> order;
  Best(args.scores + i * args.stride, ColumnsOf(args.candidates, i, args.visible[i]), args.topk,
       order);
  int32_t* selected = args.selected + i * args.topk;
  for (const int32_t column : order) {
    *selected++ = static_cast<int32_t>(EntryOfColumn(args.candidates, i, column));
  }
  std::fill(selected, args.selected + (i + 1) * args.topk, -1);
  args.selected_count[i] = std::ssize(order);
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
  int64_t columns = 0;
  for (int64_t i = 0; i < args.queries; ++i) {
    columns = std::max(columns, ColumnsOf(args.candidates, i, args.visible[i]));
  }
  const int64_t tiles = CeilDiv(columns, kKeyTile);
  const bool shared = args.candidates.blocks == nullptr;
  pool.ParallelFor(shared ? tiles : tiles * args.queries, 1, [&](int64_t first, int64_t last, int) {
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t begin = unit % tiles * kKeyTile, end = std::min(columns, begin + kKeyTile);
      if (shared) {
        ScoreTile(args, begin, end);
      } else {
        ScoreCandidates(args, unit / tiles, begin, end);
      }
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
