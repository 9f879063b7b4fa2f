// Core attention over window and selected compressed entries, with a sink in the denominator (spec
// model-v41 section 2.5.6).
//
// All heads share one key vector a slot, so a block of 64 slots is expanded once and multiplied
// with every head as a small matrix product; so are the probabilities with the same rows. Threads
// take whole queries, whose neighbours share the expanded window, or, of few queries, a part of the
// heads each.
//
// Order of the sums, for every split: a dot as in dot.h; the probabilities of a block one by one in
// slot order; values in slot order, on bf16 targets occupied slots 2i and 2i + 1 of a block in one
// instruction.
#include "kernels/cpu/ops/attention.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/keys.h"
#include "kernels/cpu/ops/tiles.h"
#include "kernels/cpu/scratch.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

constexpr float kFirstMax = -1e30f;
// exp gives exactly zero for it.
constexpr float kNever = -__builtin_inff();
// Slots whose keys stay in the L1 cache while all heads pass.
constexpr int64_t kSlotGroup = 16;
// Rows of the expanded window beyond the longest list's: how far it slides before it starts anew.
constexpr int64_t kWindowSlide = 128;
// Records ahead that are fetched into the cache: selected ones lie anywhere.
constexpr int64_t kPrefetchDistance = 8;
// Products below which a second thread does not pay, and heads: every thread expands all keys.
constexpr int64_t kMinShareProducts = 256 * 1024, kMinShareHeads = 4;
// Queries a thread from which each thread takes whole queries.
constexpr int64_t kManyQueries = 4;
constexpr int64_t kCacheLine = 64;

enum ScratchSlot {
  kQuerySlot,
  kWindowSlot,
  kKeySlot,
  kValueSlot,
  kScoreSlot,
  kWeightSlot,
  kAccSlot,
  kStateSlot
};

template <typename T>
DEEPINFER_INLINE T* Scratch(ScratchSlot slot, int64_t count) {
  return static_cast<T*>(ScratchBytes(slot, static_cast<size_t>(count) * sizeof(T)));
}

struct Shape {
  int64_t heads, dim;
  // Elements between rows, one cache line more than a row: columns of neighbouring rows should not
  // fall into the same set of the cache.
  int64_t key_stride, value_stride;
  float scale;

  explicit Shape(const AttentionArgs& args) : heads(args.heads), dim(args.dim), scale(args.scale) {
    constexpr int64_t kPad = kCacheLine / static_cast<int64_t>(sizeof(DotElement));
    key_stride = dim + kPad;
    value_stride = dim * kStepRows + kPad;
  }
};

// Slots of one softmax block that hold keys: window positions, then selected entries.
struct BlockSlots {
  int64_t position = 0, windows = 0;  // first window position and their number
  int64_t entry = 0, entries = 0;     // first index into `selected` and their number

  DEEPINFER_INLINE BlockSlots(const AttentionQuery& list, int64_t block) {
    const int64_t begin = block * kAttentionBlock, end = begin + kAttentionBlock;
    const int64_t window = Min(list.window_end - list.window_begin, list.window_slots);
    position = list.window_begin + begin;
    windows = Max<int64_t>(0, Min(window, end) - begin);
    entry = Max(begin, list.window_slots) - list.window_slots;
    entries = Max<int64_t>(0, Min(list.selected_count, end - list.window_slots) - entry);
  }
  DEEPINFER_INLINE int64_t count() const { return windows + entries; }
};

DEEPINFER_INLINE int64_t SlotsOf(const AttentionQuery& list) {
  return list.window_slots + list.selected_count;
}
// Window keys of neighbouring queries, expanded once: rows of positions [begin, end).
struct ExpandedWindow {
  const WindowView* view = nullptr;
  int64_t begin = 0, end = 0, capacity = 0;
  DotElement* rows = nullptr;

  DEEPINFER_INLINE void Cover(const AttentionQuery& list, const Shape& shape) {
    const bool slides = view == list.window && list.window_begin >= begin &&
                        list.window_begin <= end && list.window_end <= begin + capacity;
    if (!slides) {
      view = list.window;
      begin = end = list.window_begin;
    }
    for (; end < list.window_end; ++end) {
      ExpandWindowRecord(RecordOf(*view, end), shape.dim, rows + (end - begin) * shape.key_stride);
    }
  }
};

// Rows of a block's occupied slots; selected entries are expanded into `buffer` [kAttentionBlock,
// key_stride].
DEEPINFER_INLINE void ExpandKeys(const AttentionQuery& list, const BlockSlots& slots,
                                 const Shape& shape, const ExpandedWindow& window,
                                 DotElement* buffer, const DotElement** keys) {
  for (int64_t i = 0; i < slots.windows; ++i) {
    keys[i] = window.rows + (slots.position + i - window.begin) * shape.key_stride;
  }
  keys += slots.windows;
  const int32_t* selected = list.selected + slots.entry;
  const int64_t ahead = list.selected_count - slots.entry;
  for (int64_t i = 0; i < slots.entries; ++i) {
    if (i + kPrefetchDistance < ahead) {
      PrefetchRecord(RecordOf(*list.entries, selected[i + kPrefetchDistance]),
                     list.entries->entry_bytes);
    }
    DotElement* row = buffer + i * shape.key_stride;
    ExpandKvRecord(RecordOf(*list.entries, selected[i]), shape.dim, row);
    keys[i] = row;
  }
}

// Scaled dots of the first `slots` slots with all heads: scores [heads, kAttentionBlock].
DEEPINFER_INLINE void ScoreSlots(const Shape& shape, const DotElement* q, int64_t heads,
                                 const DotElement* const* keys, int64_t slots, float* scores) {
  for (int64_t group = 0; group < slots; group += kSlotGroup) {
    const int64_t end = Min(slots, group + kSlotGroup);
    ForRowTiles(heads, [&](int64_t h, auto count) {
      for (int64_t i = group; i < end; i += kTileCols) {
        const DotElement* tile[kTileCols];
        for (int64_t j = 0; j < kTileCols; ++j) tile[j] = keys[Min(i + j, end - 1)];
        DotTile<decltype(count)::value>(q + h * shape.dim, shape.dim, tile, shape.dim, shape.scale,
                                        scores + h * kAttentionBlock + i, kAttentionBlock);
      }
    });
  }
}

// Running softmax of some heads of one query, and what their values have summed to.
struct Heads {
  int64_t count;
  float* max;           // [count]
  float* sum;           // [count]
  float* shrink;        // [count]: factor of the sums before the running block
  float* next;          // [count]
  float* acc;           // [count, dim]
  DotElement* weights;  // [count, kAttentionBlock]
  bool started = false;

  Heads(const Shape& shape, int64_t count) : count(count) {
    const int64_t padded = (count + kLanes - 1) / kLanes * kLanes;
    max = Scratch<float>(kStateSlot, 4 * padded);
    sum = max + padded;
    shrink = sum + padded;
    next = shrink + padded;
    for (int64_t h = 0; h < padded; ++h) {
      max[h] = kFirstMax;
      sum[h] = 0;
      next[h] = kFirstMax;
    }
    acc = Scratch<float>(kAccSlot, count * shape.dim);
    weights = Scratch<DotElement>(kWeightSlot, count * kAttentionBlock);
  }
};

// sums[h] = the sum of row h in ascending order, for `rows` chains at once.
template <int rows>
DEEPINFER_INLINE void SumRowsInOrder(const float* x, float* sums) {
  float sum[rows] = {};
  for (int64_t n = 0; n < kAttentionBlock; ++n) {
#pragma GCC unroll 8
    for (int h = 0; h < rows; ++h) sum[h] += x[h * kAttentionBlock + n];
  }
  for (int h = 0; h < rows; ++h) sums[h] = sum[h];
}

// Turns the scores of a block with `occupied` keys into weights and moves the running state.
DEEPINFER_INLINE void SoftmaxBlock(Heads& heads, float* scores, int64_t occupied) {
  constexpr int64_t kVecs = kAttentionBlock / kLanes;
  for (int64_t h = 0; h < heads.count; ++h) {
    float* z = scores + h * kAttentionBlock;
    for (int64_t n = occupied; n < kAttentionBlock; ++n) z[n] = kNever;
    F32x16 top = Load(z);
    for (int64_t i = 1; i < kVecs; ++i) top = VMax(top, Load(z + i * kLanes));
    heads.next[h] = Max(heads.max[h], MaxLanes(top));
  }
  for (int64_t h = 0; h < heads.count; h += kLanes) {
    Store(Exp(Load(heads.max + h) - Load(heads.next + h)), heads.shrink + h);
    Store(Load(heads.next + h), heads.max + h);
  }
  for (int64_t h = 0; h < heads.count; ++h) {
    float* z = scores + h * kAttentionBlock;
    const F32x16 top = Set1(heads.max[h]);
    for (int64_t i = 0; i < kVecs; ++i) {
      const F32x16 p = Exp(Load(z + i * kLanes) - top);
      Store(p, z + i * kLanes);
      StoreWeights(p, heads.weights + h * kAttentionBlock + i * kLanes);
    }
  }
  int64_t h = 0;
  for (; h + 4 <= heads.count; h += 4) {
    SumRowsInOrder<4>(scores + h * kAttentionBlock, heads.next + h);
  }
  for (; h < heads.count; ++h) SumRowsInOrder<1>(scores + h * kAttentionBlock, heads.next + h);
  for (h = 0; h < heads.count; ++h) heads.sum[h] = heads.sum[h] * heads.shrink[h] + heads.next[h];
}

DEEPINFER_INLINE void AddBlock(const Shape& shape, Heads& heads, float* scores, int64_t occupied,
                               const DotElement* const* values) {
  SoftmaxBlock(heads, scores, occupied);
  AddWeighted(heads.weights, kAttentionBlock, heads.count, values,
              (occupied + kStepRows - 1) / kStepRows, shape.dim,
              heads.started ? heads.shrink : nullptr, heads.acc, shape.dim);
  heads.started = true;
}

// out [heads.count, dim] of the heads whose sinks are given.
DEEPINFER_INLINE void Finish(const Shape& shape, const Heads& heads, const float* sink, bf16* out) {
  float* total = heads.shrink;
  for (int64_t h = 0; h < heads.count; h += kLanes) {
    const F32x16 s = LoadFirst(sink + h, Min(kLanes, heads.count - h));
    Store(Load(heads.sum + h) + Exp(s - Load(heads.max + h)), total + h);
  }
  for (int64_t h = 0; h < heads.count; ++h) {
    const F32x16 divisor = Set1(total[h]);
    for (int64_t d = 0; d < shape.dim; d += kLanes) {
      const F32x16 sum = heads.started ? Load(heads.acc + h * shape.dim + d) : Zero();
      StoreBf16(sum / divisor, out + h * shape.dim + d);
    }
  }
}

// Heads [head, head + count) of query i as DotElement. Copied even where that changes nothing: the
// copy reads them in order, as the processor fetches ahead, which tiles of several rows do not.
DEEPINFER_INLINE const DotElement* ExpandQuery(const AttentionArgs& args, int64_t i, int64_t head,
                                               int64_t count) {
  const bf16* q = args.q + (i * args.heads + head) * args.dim;
  auto* out = Scratch<DotElement>(kQuerySlot, count * args.dim);
  for (int64_t k = 0; k < count * args.dim; k += 32) StoreDot(FromBf16(q + k), out + k);
  return out;
}

// Rows [begin, end) of all heads of all queries, query after query and block after block.
class HeadRange {
 public:
  HeadRange(const AttentionArgs& args, int64_t begin, int64_t end)
      : args_(args), shape_(args), begin_(begin), end_(end) {
    for (int64_t i = begin / args.heads; i * args.heads < end; ++i) {
      const AttentionQuery& list = args.lists[i];
      window_.capacity = Max(window_.capacity, list.window_end - list.window_begin + kWindowSlide);
    }
    window_.rows = Scratch<DotElement>(kWindowSlot, window_.capacity * shape_.key_stride);
    keys_ = Scratch<DotElement>(kKeySlot, kAttentionBlock * shape_.key_stride);
    values_ = Scratch<DotElement>(kValueSlot, kAttentionBlock / kStepRows * shape_.value_stride);
    scores_ = Scratch<float>(kScoreSlot, args.heads * kAttentionBlock);
  }

  void Attend() {
    for (int64_t row = begin_; row < end_;) {
      const int64_t i = row / args_.heads, head = row % args_.heads;
      const int64_t count = Min(args_.heads - head, end_ - row);
      AttendQuery(i, head, count);
      row += count;
    }
  }

 private:
  void AttendQuery(int64_t i, int64_t head, int64_t count) {
    const AttentionQuery& list = args_.lists[i];
    const DotElement* q = ExpandQuery(args_, i, head, count);
    Heads heads(shape_, count);
    window_.Cover(list, shape_);
    const DotElement* keys[kAttentionBlock];
    const DotElement* values[kAttentionBlock];
    for (int64_t b = 0; b * kAttentionBlock < SlotsOf(list); ++b) {
      const BlockSlots slots(list, b);
      const int64_t occupied = slots.count();
      if (occupied == 0) continue;
      ExpandKeys(list, slots, shape_, window_, keys_, keys);
      ArrangeValues(keys, occupied, shape_.dim, values_, shape_.value_stride, values);
      ScoreSlots(shape_, q, count, keys, occupied, scores_);
      AddBlock(shape_, heads, scores_, occupied, values);
    }
    Finish(shape_, heads, args_.sink + head, args_.out + (i * args_.heads + head) * args_.dim);
  }

  const AttentionArgs& args_;
  const Shape shape_;
  const int64_t begin_, end_;
  ExpandedWindow window_;
  DotElement* keys_;
  DotElement* values_;
  float* scores_;
};

// The queries whose middle lies in [from, to) of all slots.
void AttendSlotRange(const AttentionArgs& args, double from, double to) {
  double start = 0;
  int64_t begin = -1, i = 0;
  for (; i < args.queries; ++i) {
    const auto slots = static_cast<double>(SlotsOf(args.lists[i]));
    const double middle = start + slots / 2;
    if (middle >= to) break;
    if (middle >= from && begin < 0) begin = i;
    start += slots;
  }
  if (begin >= 0) HeadRange(args, begin * args.heads, i * args.heads).Attend();
}

}  // namespace

void Attention(ThreadPool& pool, const AttentionArgs& args) {
  int64_t slots = 0;
  for (int64_t i = 0; i < args.queries; ++i) slots += SlotsOf(args.lists[i]);
  const int64_t rows = args.queries * args.heads;
  const int64_t wanted =
      Min(2 * slots * args.heads * args.dim / kMinShareProducts, rows / kMinShareHeads);
  const int64_t shares = Max<int64_t>(1, Min<int64_t>(pool.size(), wanted));
  if (args.queries < kManyQueries * shares) {
    pool.ParallelFor(rows, (rows + shares - 1) / shares, [&](int64_t begin, int64_t end, int) {
      HeadRange(args, begin, end).Attend();
    });
    return;
  }
  const double share = static_cast<double>(slots) / static_cast<double>(shares);
  pool.ParallelFor(shares, 1, [&](int64_t begin, int64_t end, int) {
    AttendSlotRange(
        args, share * static_cast<double>(begin),
        end == shares ? 2.0 * static_cast<double>(slots) + 1 : share * static_cast<double>(end));
  });
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
