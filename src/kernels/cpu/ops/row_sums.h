// Sums over rows of bf16 values in the order docs/kernels.md gives.
#pragma once

#include "kernels/cpu/ops/simd.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// sums[i] = sum of squares of row i of `rows` rows of `cols` values, `stride` apart: one chain of
// additions a row, several rows at once to hide its latency.
template <int rows>
DEEPINFER_INLINE void SumSquares(const bf16* x, int64_t stride, int64_t cols, float* sums) {
  F32x16 acc[rows];
  for (int i = 0; i < rows; ++i) acc[i] = Zero();
  int64_t k = 0;
  for (; k + kLanes <= cols; k += kLanes) {
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
      const F32x16 v = LoadBf16(x + i * stride + k);
      acc[i] = MulAdd(v, v, acc[i]);
    }
  }
  for (int i = 0; i < rows; ++i) {
    if (k < cols) {
      const F32x16 v = LoadBf16First(x + i * stride + k, cols - k);
      acc[i] = MulAdd(v, v, acc[i]);
    }
    sums[i] = SumLanes(acc[i]);
  }
}

// 1 / sqrt(mean of the squares + eps)
DEEPINFER_INLINE float InverseNorm(float sum_squares, int64_t cols, float eps) {
  return 1.0f / __builtin_sqrtf(sum_squares / static_cast<float>(cols) + eps);
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
