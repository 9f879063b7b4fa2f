// The doubly stochastic mixing matrices of hyper-connections (spec model-v41 section 2.3). Written
// once for two kinds of element: float, one matrix, and F32x16, sixteen matrices side by side.
#pragma once

#include "kernels/cpu/ops/simd.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

inline constexpr int kMaxStreams = 8;

DEEPINFER_INLINE float Broadcast(float x, float) { return x; }
DEEPINFER_INLINE F32x16 Broadcast(float x, F32x16) { return Set1(x); }
DEEPINFER_INLINE float Larger(float a, float b) { return Max(a, b); }
DEEPINFER_INLINE F32x16 Larger(F32x16 a, F32x16 b) { return VMax(b, a); }

DEEPINFER_INLINE void ExpAll(float* x, int count) {
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) Store(Exp(Load(x + i)), x + i);
  if (i < count) StoreFirst(Exp(LoadFirst(x + i, count - i)), x + i, count - i);
}
DEEPINFER_INLINE void ExpAll(F32x16* x, int count) {
  for (int i = 0; i < count; ++i) x[i] = Exp(x[i]);
}

// c [n, n] in place: a softmax of the rows, then alternating column and row normalisations, columns
// last. fixed: n when the compiler is to know it, else 0.
template <int fixed, typename Value>
DEEPINFER_INLINE void Sinkhorn(Value* c, int streams, int iterations, float small) {
  const int n = fixed > 0 ? fixed : streams;
  const Value eps = Broadcast(small, c[0]), zero = Broadcast(0.0f, c[0]);
  for (int a = 0; a < n; ++a) {
    Value top = c[a * n];
    for (int b = 1; b < n; ++b) top = Larger(top, c[a * n + b]);
    for (int b = 0; b < n; ++b) c[a * n + b] = c[a * n + b] - top;
  }
  ExpAll(c, n * n);
  for (int round = 0; round < Max(iterations, 1); ++round) {
    for (int a = 0; a < n; ++a) {
      Value sum = zero;
      for (int b = 0; b < n; ++b) sum = sum + c[a * n + b];
      // The softmax gets its epsilon behind the division, later rounds below the bar.
      if (round > 0) sum = sum + eps;
      for (int b = 0; b < n; ++b) c[a * n + b] = c[a * n + b] / sum;
    }
    if (round == 0) {
      for (int i = 0; i < n * n; ++i) c[i] = c[i] + eps;
    }
    Value sums[fixed > 0 ? fixed : kMaxStreams];
    for (int b = 0; b < n; ++b) sums[b] = zero;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) sums[b] = sums[b] + c[a * n + b];
    }
    for (int b = 0; b < n; ++b) sums[b] = sums[b] + eps;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) c[a * n + b] = c[a * n + b] / sums[b];
    }
  }
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
