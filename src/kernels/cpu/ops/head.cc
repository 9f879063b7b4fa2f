// The head's largest logits. Source: spec model-v41 section 2.1.
//
// Threads compute bands of the vocabulary into a small buffer and keep a running list for each row.
// Logit and id order all candidates in one way only, so the lists and their union do not depend on
// who computed which band.
#include "kernels/cpu/ops/head.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/gemm.h"
#include "kernels/cpu/ops/simd.h"
#include "kernels/cpu/scratch.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

// Logits of a row that are computed before they are looked through: whole lanes.
constexpr int64_t kBandLogits = 256;
// Rows whose logits are computed together.
constexpr int64_t kBlockRows = 96;

enum ScratchSlot { kListsSlot = 4, kBandSlot = 5 };

struct Candidate {
  float logit;
  int32_t id;
};

// The best candidates of a row so far, best first.
struct TopList {
  int64_t count;
  Candidate best[kMaxTopLogits];
};

DEEPINFER_INLINE bool IsNan(float x) { return x != x; }

DEEPINFER_INLINE bool Before(Candidate a, Candidate b) {
  if (IsNan(a.logit) != IsNan(b.logit)) return IsNan(a.logit);
  if (!IsNan(a.logit) && a.logit != b.logit) return a.logit > b.logit;
  return a.id < b.id;
}

void Insert(Candidate candidate, int64_t topk, TopList& list) {
  if (list.count == topk && !Before(candidate, list.best[topk - 1])) return;
  int64_t at = list.count < topk ? list.count++ : topk - 1;
  for (; at > 0 && Before(candidate, list.best[at - 1]); --at) list.best[at] = list.best[at - 1];
  list.best[at] = candidate;
}

// Logits of ids first, first + 1, ...
void InsertBand(const float* logits, int64_t count, int64_t first, int64_t topk, TopList& list) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t n = Min(kLanes, count - i);
    uint32_t worthy = (uint32_t{1} << n) - 1;
    if (list.count == topk) {
      // All but the smaller ones: NaN and equal logits are looked at.
      const F32x16 values = n == kLanes ? Load(logits + i) : LoadFirst(logits + i, n);
      worthy &= ~Bits(Less(values, Set1(list.best[topk - 1].logit)));
    }
    for (; worthy != 0; worthy &= worthy - 1) {
      const int64_t j = i + __builtin_ctz(worthy);
      Insert({logits[j], static_cast<int32_t>(first + j)}, topk, list);
    }
  }
}

// The logits of ids [begin, end), all rows, into the lists.
void RunBand(const TopLogitsArgs& args, int64_t begin, int64_t end, TopList* lists) {
  const int64_t count = end - begin;
  auto* logits = static_cast<float*>(
      ScratchBytes(kBandSlot, Min(kBlockRows, args.x.rows) * kBandLogits * sizeof(float)));
  for (int64_t r = 0; r < args.x.rows; r += kBlockRows) {
    GemmItem item;
    item.kind = GemmKind::kBf16F32;
    item.x = args.x;
    item.x.values += r * args.x.stride;
    item.x.rows = Min(kBlockRows, args.x.rows - r);
    item.bf16w = {args.w.values + begin * args.w.cols, count, args.w.cols};
    item.y = logits;
    item.y_stride = kBandLogits;
    GemmOnCaller(item);
    for (int64_t i = 0; i < item.x.rows; ++i) {
      InsertBand(logits + i * kBandLogits, count, begin, args.topk, lists[r + i]);
    }
  }
}

}  // namespace

void TopLogits(ThreadPool& pool, const TopLogitsArgs& args) {
  const int64_t rows = args.x.rows, vocabulary = args.w.rows, workers = pool.size();
  // [workers, rows]
  auto* lists = static_cast<TopList*>(ScratchBytes(kListsSlot, workers * rows * sizeof(TopList)));
  for (int64_t i = 0; i < workers * rows; ++i) lists[i].count = 0;
  const int64_t bands = (vocabulary + kBandLogits - 1) / kBandLogits;
  pool.ParallelFor(bands, 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t band = begin; band < end; ++band) {
      const int64_t first = band * kBandLogits;
      RunBand(args, first, Min(vocabulary, first + kBandLogits), lists + worker * rows);
    }
  });
  for (int64_t r = 0; r < rows; ++r) {
    TopList& all = lists[r];
    for (int64_t w = 1; w < workers; ++w) {
      const TopList& list = lists[w * rows + r];
      for (int64_t k = 0; k < list.count; ++k) Insert(list.best[k], args.topk, all);
    }
    for (int64_t k = 0; k < args.topk; ++k) {
      args.ids[r * args.topk + k] = all.best[k].id;
      args.logits[r * args.topk + k] = all.best[k].logit;
    }
  }
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
