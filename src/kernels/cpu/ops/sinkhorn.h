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

typedef float Row4 __attribute__((vector_size(16)));

DEEPINFER_INLINE void Transpose(Row4* r) {
  const Row4 a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  const Row4 b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const Row4 c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const Row4 d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// The vectors of r, lane by lane, over their sum and `added`.
DEEPINFER_INLINE void DivideBySum(Row4* r, Row4 added) {
  const Row4 sum = (((r[0] + r[1]) + r[2]) + r[3]) + added;
  for (int i = 0; i < 4; ++i) r[i] = r[i] / sum;
}

// One matrix of four streams, with a row in each vector: the order and the bits of Sinkhorn<4>.
DEEPINFER_INLINE void Sinkhorn4(float* c, int iterations, float small) {
  for (int a = 0; a < 4; ++a) {
    float top = c[4 * a];
    for (int b = 1; b < 4; ++b) top = Larger(top, c[4 * a + b]);
    for (int b = 0; b < 4; ++b) c[4 * a + b] -= top;
  }
  ExpAll(c, 16);
  const Row4 eps = {small, small, small, small}, none = {};
  Row4 r[4];
  __builtin_memcpy(r, c, sizeof(r));
  for (int round = 0; round < Max(iterations, 1); ++round) {
    Transpose(r);
    DivideBySum(r, round == 0 ? none : eps);
    Transpose(r);
    for (int a = 0; a < 4 && round == 0; ++a) r[a] = r[a] + eps;
    DivideBySum(r, eps);
  }
  __builtin_memcpy(c, r, sizeof(r));
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
