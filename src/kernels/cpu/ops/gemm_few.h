// Products of few input rows: weights are expanded in registers and used at once, so that the loop
// runs at the speed at which they are read.
#pragma once

#include "kernels/cpu/ops/gemm_formats.h"
#include "kernels/cpu/ops/gemm_tiling.h"
#include "kernels/cpu/ops/tiles.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// How far ahead of the present rows weights are asked for. Rows in flight are short streams that
// the processor's own prefetching hardly gets hold of; asked for in the order of their addresses,
// they are one long one. Below 8 KiB the memory answers too late, beyond 24 KiB the L1 cache is
// too small.
inline constexpr int64_t kPrefetchBytes = 16 * 1024;

// Asks for the lines that begin in [p, p + bytes), for one use.
template <int64_t bytes>
DEEPINFER_INLINE void PrefetchStream(const char* p) {
#pragma GCC unroll 8
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 0);
}

// y[m, n..n + cols) for a tile of expanded rows x [steps, rows, 32].
template <int rows, int cols, typename Weights, typename Out>
DEEPINFER_INLINE void FewTile(const DotElement* x, const Weights& w, int64_t n, Out* y,
                              int64_t y_stride) {
  F32x16 acc[rows][cols];
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 8
    for (int j = 0; j < cols; ++j) acc[m][j] = Zero();
  }
  typename Weights::Rows weights(w, n, 0);
  const char* ahead = w.Address(n, 0) + kPrefetchBytes;
  const auto half = [&]<int i>(Count<i>) {
    DotVec x0[rows], x1[rows];
#pragma GCC unroll 8
    for (int m = 0; m < rows; ++m) {
      x0[m] = LoadDot(x + (2 * i * rows + m) * 32);
      x1[m] = LoadDot(x + ((2 * i + 1) * rows + m) * 32);
    }
#pragma GCC unroll 8
    for (int j = 0; j < cols; ++j) {
      const DotPair pair = weights.template Expand<i>(j);
      PrefetchStream<Weights::Bytes(kLongStep) / 2>(ahead);
      ahead += Weights::Bytes(kLongStep) / 2;
#pragma GCC unroll 8
      for (int m = 0; m < rows; ++m) {
        acc[m][j] = DotAdd(acc[m][j], x0[m], pair.a);
        acc[m][j] = DotAdd(acc[m][j], x1[m], pair.b);
      }
    }
  };
  int64_t k = 0;
  for (; k + kLongStep <= w.cols; k += kLongStep, x += rows * kLongStep) {
    half(Count<0>());
    half(Count<1>());
    weights.Advance();
  }
  for (; k < w.cols; k += kStep, x += rows * kStep) {
    for (int j = 0; j < cols; ++j) {
      const DotPair pair = w.ExpandEnd(n + j, k);
      for (int m = 0; m < rows; ++m) {
        acc[m][j] = DotAdd(acc[m][j], LoadDot(x + m * 32), pair.a);
        acc[m][j] = DotAdd(acc[m][j], LoadDot(x + (rows + m) * 32), pair.b);
      }
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 8
    for (int j = 0; j < cols; ++j) StoreOutput(SumLanes(acc[m][j]), y + m * y_stride + n + j);
  }
}

// y[0..rows, begin..end) for one tile of rows.
template <int rows, typename Weights, typename Out>
void FewRows(const DotElement* x, const Weights& w, int64_t begin, int64_t end, Out* y,
             int64_t y_stride) {
  constexpr int kCols = rows == 1 ? kGemvCols : kGemvColsFew;
  int64_t n = begin;
  for (; n + kCols <= end; n += kCols) FewTile<rows, kCols>(x, w, n, y, y_stride);
  for (; n < end; ++n) FewTile<rows, 1>(x, w, n, y, y_stride);
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
