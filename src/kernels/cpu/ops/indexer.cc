// Compressor pooling and index scores (spec model-v41 sections 2.5.4, 2.5.5).
//
// Keys are expanded 64 at a time and multiplied with all heads of all queries that look at them;
// with candidates every query has keys of its own. Dots: index_tile.h; heads add in order.
#include "kernels/cpu/ops/indexer.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/index_tile.h"
#include "kernels/cpu/ops/shares.h"
#include "kernels/cpu/scratch.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

constexpr float kNever = -__builtin_inff();
// Products below which a second thread does not pay.
constexpr int64_t kMinShareProducts = 256 * 1024;
// Operations on 16 lanes, about.
constexpr int64_t kPoolOperations = 64, kScaleOperations = 12;

enum ScratchSlot { kQuerySlot, kKeySlot, kRowSlot, kDotSlot };

DEEPINFER_INLINE int64_t ColumnsOf(const IndexScoreArgs& args, int64_t i) {
  const BlockLists& lists = args.candidates;
  return lists.blocks == nullptr ? args.visible[i] : lists.count[i] * lists.size;
}

// What a thread scores with.
class Scorer {
 public:
  // `step`: tiles from one that this thread takes to its next.
  Scorer(const IndexScoreArgs& args, int64_t columns, int64_t step)
      : args_(args), columns_(columns), ahead_(step * kKeyTile * args.keys.entry_bytes) {
    const int64_t rows = KeyTileRows(args.dim);
    keys_ = Buffer<DotElement>(kKeySlot, kKeyTile * (args.dim + kLanes));
    rows_ = Buffer<const DotElement*>(kRowSlot, rows);
    dots_ = Buffer<float>(kDotSlot, args.heads * kKeyTile);
    query_ = Buffer<DotElement>(kQuerySlot, args.heads * args.dim);
  }

  // The tile of columns from `first` on, of all queries.
  void ScoreShared(int64_t first) {
    ExpandTile(0, first);
    for (int64_t i = 0; i < args_.queries; ++i) ScoreQuery(i, first);
  }
  // The same of one query with keys of its own.
  void ScoreAlone(int64_t i, int64_t first) {
    if (first < ColumnsOf(args_, i)) ExpandTile(i, first);
    ScoreQuery(i, first);
  }

 private:
  template <typename T>
  static T* Buffer(ScratchSlot slot, int64_t count) {
    return static_cast<T*>(ScratchBytes(slot, static_cast<size_t>(count) * sizeof(T)));
  }

  // Keys of columns [first, first + kKeyTile) of query i; behind the last one it is repeated.
  void ExpandTile(int64_t i, int64_t first) {
    const BlockLists& lists = args_.candidates;
    const int64_t columns = lists.blocks == nullptr ? columns_ : ColumnsOf(args_, i);
    // The last block may lie partly beyond what there is.
    const int64_t newest = lists.blocks == nullptr ? columns_ - 1 : args_.visible[i] - 1;
    const uint8_t* records[kKeyTile];
    for (int64_t j = 0; j < kKeyTile; ++j) {
      const int64_t entry = EntryOfColumn(lists, i, Min(first + j, columns - 1));
      records[j] = RecordOf(args_.keys, Max<int64_t>(0, Min(entry, newest)));
      // Entries of a block follow each other; this thread's next tile is often in the same.
      PrefetchRecord(records[j] + ahead_, 2 * 64);
    }
    ExpandKeyTile(records, args_.dim, keys_, rows_);
  }

  void ScoreQuery(int64_t i, int64_t first) {
    float* scores = args_.scores + i * args_.stride + first;
    const int64_t room = Min(kKeyTile, columns_ - first);
    const int64_t count = Min(room, ColumnsOf(args_, i) - first);
    if (count > 0) {
      const bf16* weights = args_.head_weights + i * args_.heads;
      DotKeyTile(ExpandQuery(i), args_.heads, args_.dim, rows_, dots_);
      for (int64_t j = 0; j < count; j += kLanes) {
        F32x16 sum = Zero();
        for (int64_t h = 0; h < args_.heads; ++h) {
          const F32x16 dot = Load(dots_ + h * kKeyTile + j);
          sum = sum + VMax(dot, Zero()) * Set1(Bf16Value(weights[h]));
        }
        StoreFirst(sum, scores + j, Min(kLanes, count - j));
      }
    }
    // Columns beyond what the query sees; with candidates they end its last block.
    int64_t seen = Max<int64_t>(count, 0);
    if (args_.candidates.blocks != nullptr) {
      while (seen > 0 && EntryOfColumn(args_.candidates, i, first + seen - 1) >= args_.visible[i]) {
        --seen;
      }
    }
    for (int64_t j = seen; j < room; ++j) scores[j] = kNever;
  }

  const DotElement* ExpandQuery(int64_t i) {
    const int64_t count = args_.heads * args_.dim;
    const bf16* q = args_.q + i * count;
    if constexpr (sizeof(DotElement) == sizeof(bf16)) {
      return reinterpret_cast<const DotElement*>(q);
    } else {
      for (int64_t k = 0; k < count; k += 32) StoreDot(FromBf16(q + k), query_ + k);
      return query_;
    }
  }

  const IndexScoreArgs& args_;
  const int64_t columns_;  // the most that any query has
  const int64_t ahead_;    // bytes from a record to the one a step on
  DotElement* keys_;
  const DotElement** rows_;
  float* dots_;
  DotElement* query_;
};

}  // namespace

void PoolPairs(ThreadPool& pool, const float* k, const float* g, int64_t groups, int64_t dim,
               bf16* out) {
  const int64_t vectors = (dim + kLanes - 1) / kLanes;
  pool.ParallelFor(groups, Grain(vectors * kPoolOperations), [&](int64_t begin, int64_t end, int) {
    for (int64_t j = begin; j < end; ++j) {
      const float *k0 = k + 2 * j * dim, *g0 = g + 2 * j * dim;
      for (int64_t d = 0; d < dim; d += kLanes) {
        const int64_t n = Min(kLanes, dim - d);
        const F32x16 first = LoadFirst(g0 + d, n), second = LoadFirst(g0 + dim + d, n);
        const F32x16 top = VMax(first, second);
        const F32x16 e0 = Exp(first - top), e1 = Exp(second - top), sum = e0 + e1;
        const F32x16 pooled =
            LoadFirst(k0 + d, n) * (e0 / sum) + LoadFirst(k0 + dim + d, n) * (e1 / sum);
        StoreBf16First(pooled, out + j * dim + d, n);
      }
    }
  });
}

void ScaleBf16(ThreadPool& pool, bf16* w, int64_t count, float factor) {
  const int64_t vectors = (count + kLanes - 1) / kLanes;
  const F32x16 f = Set1(factor);
  pool.ParallelFor(vectors, Grain(kScaleOperations), [&](int64_t begin, int64_t end, int) {
    for (int64_t v = begin; v < end; ++v) {
      bf16* p = w + v * kLanes;
      const int64_t n = Min(kLanes, count - v * kLanes);
      if (n == kLanes) {
        StoreBf16(LoadBf16(p) * f, p);
      } else {
        StoreBf16First(LoadBf16First(p, n) * f, p, n);
      }
    }
  });
}

// Threads take every other tile: those of late entries concern fewer queries.
void IndexScores(ThreadPool& pool, const IndexScoreArgs& args) {
  int64_t columns = 0, sum = 0;
  for (int64_t i = 0; i < args.queries; ++i) {
    columns = Max(columns, ColumnsOf(args, i));
    sum += ColumnsOf(args, i);
  }
  const int64_t tiles = (columns + kKeyTile - 1) / kKeyTile;
  const bool shared = args.candidates.blocks == nullptr;
  const int64_t units = shared ? tiles : tiles * args.queries;
  const int64_t wanted = sum * args.heads * args.dim / kMinShareProducts;
  const int64_t shares = Max<int64_t>(1, Min(Min<int64_t>(pool.size(), units), wanted));
  pool.ParallelFor(shares, 1, [&](int64_t begin, int64_t end, int) {
    Scorer scorer(args, columns, shares);
    for (int64_t share = begin; share < end; ++share) {
      for (int64_t unit = share; unit < units; unit += shares) {
        if (shared) {
          scorer.ScoreShared(unit * kKeyTile);
        } else {
          scorer.ScoreAlone(unit / tiles, unit % tiles * kKeyTile);
        }
      }
    }
  });
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
