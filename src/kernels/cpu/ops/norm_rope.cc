// RMSNorm and rotary embedding. Sources: spec model-v41 sections 2.0, 2.5.2.
#include "kernels/cpu/ops/norm_rope.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/row_sums.h"
#include "kernels/cpu/ops/shares.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

// Rows whose sums run at once.
constexpr int kNormRows = 4;

void Normalise(const bf16* x, const bf16* weight, int64_t cols, float norm, bf16* y) {
  const F32x16 r = Set1(norm);
  int64_t i = 0;
  for (; i + kLanes <= cols; i += kLanes) {
    StoreBf16(LoadBf16(weight + i) * (LoadBf16(x + i) * r), y + i);
  }
  if (i < cols) {
    const int64_t n = cols - i;
    StoreBf16First(LoadBf16First(weight + i, n) * (LoadBf16First(x + i, n) * r), y + i, n);
  }
}

// Sixteen pairs as the words of memory: the first of a pair in the low half.
DEEPINFER_INLINE I32x16 LoadPairs(const bf16* x) {
  return Load(reinterpret_cast<const int32_t*>(x));
}
DEEPINFER_INLINE void StorePairs(I32x16 pairs, bf16* x) {
  Store(pairs, reinterpret_cast<int32_t*>(x));
}

DEEPINFER_INLINE I32x16 RotatePairs(I32x16 pairs, F32x16 cos, F32x16 sin) {
  const F32x16 a = AsF32(ShiftLeft<16>(pairs));
  const F32x16 b = AsF32(And(pairs, I32Set1(static_cast<int32_t>(0xffff0000u))));
  const I32x16 first = AsI32(RoundBf16(a * cos - b * sin));
  const I32x16 second = AsI32(RoundBf16(a * sin + b * cos));
  return Or(And(ShiftRight<16>(first), I32Set1(0xffff)), second);
}

// The rotated values of one head; sign -1 turns back.
void RotateHead(bf16* x, int64_t pairs, const float* cos, const float* sin, float sign) {
  int64_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes) {
    StorePairs(RotatePairs(LoadPairs(x + 2 * i), Load(cos + i), Set1(sign) * Load(sin + i)),
               x + 2 * i);
  }
  if (i < pairs) {
    const int64_t n = pairs - i;
    bf16 tail[2 * kLanes] = {};
    for (int64_t j = 0; j < 2 * n; ++j) tail[j].bits = x[2 * i + j].bits;
    StorePairs(
        RotatePairs(LoadPairs(tail), LoadFirst(cos + i, n), Set1(sign) * LoadFirst(sin + i, n)),
        tail);
    for (int64_t j = 0; j < 2 * n; ++j) x[2 * i + j].bits = tail[j].bits;
  }
}

}  // namespace

void RmsNorm(ThreadPool& pool, const RowsView& x, const bf16* weight, float eps, bf16* y) {
  const int64_t operations = (x.cols / kLanes + 1) * 12;
  pool.ParallelFor(x.rows, Grain(operations), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; r += kNormRows) {
      const int64_t count = Min<int64_t>(kNormRows, end - r);
      const bf16* rows = x.values + r * x.stride;
      float sums[kNormRows];
      if (count == kNormRows) {
        SumSquares<kNormRows>(rows, x.stride, x.cols, sums);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          SumSquares<1>(rows + i * x.stride, x.stride, x.cols, sums + i);
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        Normalise(rows + i * x.stride, weight, x.cols, InverseNorm(sums[i], x.cols, eps),
                  y + (r + i) * x.cols);
      }
    }
  });
}

void Rope(ThreadPool& pool, bf16* x, int64_t rows, int64_t heads, int64_t dim, int64_t rope_dim,
          const float* cos, const float* sin, bool inverse) {
  const int64_t pairs = rope_dim / 2, operations = (pairs / kLanes + 1) * 32;
  pool.ParallelFor(rows * heads, Grain(operations), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / heads;
      RotateHead(x + (i + 1) * dim - rope_dim, pairs, cos + row * pairs, sin + row * pairs,
                 inverse ? -1.0f : 1.0f);
    }
  });
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
