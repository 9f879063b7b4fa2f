// Hyper-connections: what reads or writes the streams. Source: spec model-v41 section 2.2. The
// coefficients are in mhc_mixes.cc.
#include "kernels/cpu/ops/mhc.h"

#include "kernels/cpu/ops/shares.h"
#include "kernels/cpu/ops/simd.h"
#include "kernels/cpu/ops/sinkhorn.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

// Steps of 16 columns and the rest of a part: what loads and stores look like in each.
struct WholeStep {
  DEEPINFER_INLINE F32x16 Get(const bf16* p) const { return LoadBf16(p); }
  DEEPINFER_INLINE void Put(F32x16 v, bf16* p) const { StoreBf16(v, p); }
};
struct PartStep {
  int64_t n;
  DEEPINFER_INLINE F32x16 Get(const bf16* p) const { return LoadBf16First(p, n); }
  DEEPINFER_INLINE void Put(F32x16 v, bf16* p) const { StoreBf16First(v, p, n); }
};

// step(d, access) over columns [begin, end).
template <typename Step>
DEEPINFER_INLINE void ForSteps(int64_t begin, int64_t end, const Step& step) {
  int64_t d = begin;
  for (; d + kLanes <= end; d += kLanes) step(d, WholeStep{});
  if (d < end) step(d, PartStep{end - d});
}

// fixed: the number of streams when the compiler is to know it, else 0.
template <int fixed>
void CollapsePart(const bf16* h, const float* pre, int streams, int64_t hidden, int64_t begin,
                  int64_t end, bf16* x) {
  const int n = fixed > 0 ? fixed : streams;
  ForSteps(begin, end, [&](int64_t d, auto access) DEEPINFER_INLINE_LAMBDA {
    F32x16 sum = Zero();
    for (int s = 0; s < n; ++s) sum = sum + Set1(pre[s]) * access.Get(h + s * hidden + d);
    access.Put(sum, x + d);
  });
}

template <int fixed>
void ExpandPart(const bf16* y, const float* post, const float* comb, int streams, int64_t hidden,
                int64_t begin, int64_t end, bf16* h) {
  const int n = fixed > 0 ? fixed : streams;
  ForSteps(begin, end, [&](int64_t d, auto access) DEEPINFER_INLINE_LAMBDA {
    F32x16 old[fixed > 0 ? fixed : kMaxStreams];
    for (int s = 0; s < n; ++s) old[s] = access.Get(h + s * hidden + d);
    const F32x16 added = access.Get(y + d);
    for (int t = 0; t < n; ++t) {
      F32x16 mixed = Zero();
      for (int s = 0; s < n; ++s) mixed = mixed + Set1(comb[s * n + t]) * old[s];
      access.Put(Set1(post[t]) * added + mixed, h + t * hidden + d);
    }
  });
}

void MeanPart(const bf16* h, int streams, int64_t hidden, int64_t begin, int64_t end, bf16* tap) {
  const F32x16 count = Set1(static_cast<float>(streams));
  ForSteps(begin, end, [&](int64_t d, auto access) DEEPINFER_INLINE_LAMBDA {
    F32x16 sum = Zero();
    for (int s = 0; s < streams; ++s) sum = sum + access.Get(h + s * hidden + d);
    access.Put(sum / count, tap + d);
  });
}

}  // namespace

void MhcCollapse(ThreadPool& pool, const bf16* h, const float* pre, int64_t rows, int streams,
                 int64_t hidden, bf16* x) {
  const auto part = streams == 4 ? CollapsePart<4> : CollapsePart<0>;
  ForParts(pool, rows, hidden, 4 * streams + 8, [&](int64_t r, int64_t begin, int64_t end) {
    part(h + r * streams * hidden, pre + r * streams, streams, hidden, begin, end, x + r * hidden);
  });
}

void MhcExpand(ThreadPool& pool, const bf16* y, const float* post, const float* comb, int64_t rows,
               int streams, int64_t hidden, bf16* h) {
  const auto part = streams == 4 ? ExpandPart<4> : ExpandPart<0>;
  const int64_t operations = streams * (2 * streams + 12);
  ForParts(pool, rows, hidden, operations, [&](int64_t r, int64_t begin, int64_t end) {
    part(y + r * hidden, post + r * streams, comb + r * streams * streams, streams, hidden, begin,
         end, h + r * streams * hidden);
  });
}

void StreamMean(ThreadPool& pool, const bf16* h, int64_t rows, int streams, int64_t hidden,
                bf16* tap, int64_t tap_stride) {
  ForParts(pool, rows, hidden, 3 * streams + 16, [&](int64_t r, int64_t begin, int64_t end) {
    MeanPart(h + r * streams * hidden, streams, hidden, begin, end, tap + r * tap_stride);
  });
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
