// Register tiles of small products whose rows lie in the cache: dots along a row, and weighted sums
// of rows.
#pragma once

#include "kernels/cpu/ops/dot.h"
#include "kernels/cpu/ops/values.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

template <int n>
struct Count {
  static constexpr int value = n;
};

// fn(first, Count<rows>) for tiles of at most kTileRows rows, as equal as can be, that cover
// [0, rows).
template <int most, typename Fn>
DEEPINFER_INLINE void WithCount(int64_t count, const Fn& fn) {
  if constexpr (most > 1) {
    if (count < most) return WithCount<most - 1>(count, fn);
  }
  fn(Count<most>());
}
template <typename Fn>
DEEPINFER_INLINE void ForRowTiles(int64_t rows, const Fn& fn) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = rows * t / tiles;
    WithCount<kTileRows>(rows * (t + 1) / tiles - first, [&](auto count) { fn(first, count); });
  }
}

// out[m * out_stride + j] = scale * (x_m . keys[j]) for rows x_m, x_stride elements apart, and
// kTileCols keys of `dim` elements. Order of the sums: that of DotAdd, then the lanes' tree.
template <int rows>
DEEPINFER_INLINE void DotTile(const DotElement* x, int64_t x_stride, const DotElement* const* keys,
                              int64_t dim, float scale, float* out, int64_t out_stride) {
  F32x16 acc[rows][kTileCols];
  const DotElement* key[kTileCols];
#pragma GCC unroll 8
  for (int j = 0; j < kTileCols; ++j) {
    key[j] = keys[j];
#pragma GCC unroll 8
    for (int m = 0; m < rows; ++m) acc[m][j] = Zero();
  }
  for (int64_t k = 0; k < dim; k += 32) {
    DotVec xk[rows];
#pragma GCC unroll 8
    for (int m = 0; m < rows; ++m) xk[m] = LoadDot(x + m * x_stride + k);
#pragma GCC unroll 8
    for (int j = 0; j < kTileCols; ++j) {
      const DotVec wk = LoadDot(key[j] + k);
#pragma GCC unroll 8
      for (int m = 0; m < rows; ++m) acc[m][j] = DotAdd(acc[m][j], xk[m], wk);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
    float sums[kTileCols];
    if constexpr (kTileCols == 4) {
      SumLanes4(acc[m][0], acc[m][1], acc[m][2], acc[m][3], sums);
    } else {
      for (int j = 0; j < kTileCols; ++j) sums[j] = SumLanes(acc[m][j]);
    }
    for (int j = 0; j < kTileCols; ++j) out[m * out_stride + j] = scale * sums[j];
  }
}

// Columns [first, first + 16 * vecs) of acc_m = shrink[m] * acc_m + sum over n of w_m[n] v_n, for
// rows of weights w_stride apart and rows of acc acc_stride apart. Without `shrink` acc starts from
// zero. values[i]: step i of kStepRows rows.
template <int rows, int vecs>
DEEPINFER_INLINE void ValueTile(const DotElement* w, int64_t w_stride,
                                const DotElement* const* values, int64_t steps, int64_t first,
                                const float* shrink, float* acc, int64_t acc_stride) {
  F32x16 sum[rows][vecs];
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 8
    for (int j = 0; j < vecs; ++j) {
      sum[m][j] = shrink == nullptr
                      ? Zero()
                      : Load(acc + m * acc_stride + first + j * kLanes) * Set1(shrink[m]);
    }
  }
  for (int64_t n = 0; n < steps; ++n) {
    const DotElement* v = values[n] + first * kStepRows;
    ValueVec vn[vecs];
#pragma GCC unroll 8
    for (int j = 0; j < vecs; ++j) vn[j] = LoadValues(v + j * kLanes * kStepRows);
#pragma GCC unroll 8
    for (int m = 0; m < rows; ++m) {
      const WeightVec wm = LoadWeights(w + m * w_stride + n * kStepRows);
#pragma GCC unroll 8
      for (int j = 0; j < vecs; ++j) sum[m][j] = AddValues(sum[m][j], wm, vn[j]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 8
    for (int j = 0; j < vecs; ++j) Store(sum[m][j], acc + m * acc_stride + first + j * kLanes);
  }
}

// All columns [0, cols), a multiple of 32, for all rows.
DEEPINFER_INLINE void AddWeighted(const DotElement* w, int64_t w_stride, int64_t rows,
                                  const DotElement* const* values, int64_t steps, int64_t cols,
                                  const float* shrink, float* acc, int64_t acc_stride) {
  constexpr int64_t kWide = kTileCols * kLanes, kNarrow = 2 * kLanes;
  int64_t first = 0;
  for (; first + kWide <= cols; first += kWide) {
    ForRowTiles(rows, [&](int64_t m, auto count) {
      ValueTile<decltype(count)::value, kTileCols>(w + m * w_stride, w_stride, values, steps, first,
                                                   shrink == nullptr ? nullptr : shrink + m,
                                                   acc + m * acc_stride, acc_stride);
    });
  }
  for (; first < cols; first += kNarrow) {
    ForRowTiles(rows, [&](int64_t m, auto count) {
      ValueTile<decltype(count)::value, 2>(w + m * w_stride, w_stride, values, steps, first,
                                           shrink == nullptr ? nullptr : shrink + m,
                                           acc + m * acc_stride, acc_stride);
    });
  }
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
