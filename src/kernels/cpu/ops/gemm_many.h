// Products of many input rows: a panel of weight rows is expanded into the L1 cache and used for
// all rows of a block.
#pragma once

#include "kernels/cpu/ops/gemm_formats.h"
#include "kernels/cpu/ops/gemm_tiling.h"
#include "kernels/cpu/scratch.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

enum ScratchSlot { kInputSlot, kScaledSlot, kPanelSlot, kLanesSlot };

// Elements of K a panel holds at most: the panel should stay in the L1 cache while the inputs
// stream by.
constexpr int64_t kPanelCols =
    16 * 1024 / (kTileCols * static_cast<int64_t>(sizeof(DotElement))) / kLongStep * kLongStep;
// lanes[m][j] += x_m . w_j over `steps` steps of 32 elements. x is [steps, rows, 32], the panel
// [steps, kTileCols, 32].
template <int rows>
void Tile(const DotElement* x, const DotElement* panel, int64_t steps, bool first, float* lanes) {
  F32x16 acc[rows][kTileCols];
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 8
    for (int j = 0; j < kTileCols; ++j) {
      acc[m][j] = first ? Zero() : Load(lanes + (m * kTileCols + j) * kLanes);
    }
  }
  for (int64_t s = 0; s < steps; ++s, x += rows * 32, panel += kTileCols * 32) {
    DotVec xk[rows];
#pragma GCC unroll 8
    for (int m = 0; m < rows; ++m) xk[m] = LoadDot(x + m * 32);
#pragma GCC unroll 8
    for (int j = 0; j < kTileCols; ++j) {
      const DotVec wk = LoadDot(panel + j * 32);
#pragma GCC unroll 8
      for (int m = 0; m < rows; ++m) acc[m][j] = DotAdd(acc[m][j], xk[m], wk);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 8
    for (int j = 0; j < kTileCols; ++j) Store(acc[m][j], lanes + (m * kTileCols + j) * kLanes);
  }
}

using TileFunction = void (*)(const DotElement*, const DotElement*, int64_t, bool, float*);

template <int rows>
TileFunction TileOf(int64_t wanted) {
  if constexpr (rows == 1) {
    return Tile<1>;
  } else {
    return wanted == rows ? Tile<rows> : TileOf<rows - 1>(wanted);
  }
}

// Elements [k, k + cols) of weight rows [n, n + count) into the panel [cols / 32, kTileCols, 32],
// scaled; rows behind are zero. A panel lies inside a band.
template <typename Weights>
class PanelWriter {
 public:
  PanelWriter(const Weights& w, int64_t n, int64_t count, DotElement* panel)
      : w_(w), n_(n), count_(count), panel_(panel) {
    if constexpr (Weights::kBandScales) band_ = w.BandScales(n);
  }

  void Write(int64_t k, int64_t end) {
    if (count_ == kTileCols) {
      typename Weights::Rows rows(w_, n_, k);
      for (; k + kLongStep <= Min(end, w_.cols); k += kLongStep, rows.Advance()) {
#pragma GCC unroll 8
        for (int j = 0; j < kTileCols; ++j) Put(rows.template Expand<0>(j), j, k);
        panel_ += 2 * kTileCols * 32;
#pragma GCC unroll 8
        for (int j = 0; j < kTileCols; ++j) Put(rows.template Expand<1>(j), j, k + kStep);
        panel_ += 2 * kTileCols * 32;
      }
    }
    for (; k < end; k += kStep, panel_ += 2 * kTileCols * 32) {
      for (int j = 0; j < kTileCols; ++j) {
        Put(j < count_ ? w_.ExpandEnd(n_ + j, k) : DotPair{ZeroDot(), ZeroDot()}, j, k);
      }
    }
  }

 private:
  DEEPINFER_INLINE void Put(DotPair pair, int j, int64_t k) {
    if constexpr (Weights::kBandScales) {
      pair.a = ScaleDot(pair.a, band_[k / kGroup]);
      if (k + kGroup < w_.cols) pair.b = ScaleDot(pair.b, band_[k / kGroup + 1]);
    }
    StoreDot(pair.a, panel_ + j * 32);
    StoreDot(pair.b, panel_ + (kTileCols + j) * 32);
  }

  const Weights& w_;
  const int64_t n_, count_;
  DotElement* panel_;
  const uint8_t* band_ = nullptr;
};

// Asks for the bytes that the next panel will need, a few lines at a time, so that reading
// weights and multiplying overlap.
class PanelPrefetch {
 public:
  template <typename Weights>
  PanelPrefetch(const Weights& w, int64_t n, int64_t count, int64_t k, int64_t cols)
      : line_(w.Address(n, k)),
        row_bytes_(Weights::Bytes(w.cols)),
        lines_((Weights::Bytes(Min(cols, w.cols - k)) + 63) / 64),
        left_in_row_(lines_),
        left_(count * lines_) {}

  int64_t lines() const { return left_; }
  DEEPINFER_INLINE void Issue(int64_t lines) {
    lines = Min(lines, left_);
    left_ -= lines;
    for (; lines > 0; --lines, line_ += 64) {
      __builtin_prefetch(line_, 0, 0);
      if (--left_in_row_ == 0) {
        left_in_row_ = lines_;
        line_ += row_bytes_ - lines_ * 64;
      }
    }
  }

 private:
  const char* line_;
  int64_t row_bytes_, lines_, left_in_row_, left_;
};

// The `count` sums of a row of lanes [kTileCols, 16].
template <typename Out>
DEEPINFER_INLINE void StoreSums(const float* lanes, int64_t count, Out* y) {
#if defined(__AVX512F__)
  if (count == 4) {
    return SumLanes4(Load(lanes), Load(lanes + kLanes), Load(lanes + 2 * kLanes),
                     Load(lanes + 3 * kLanes), y);
  }
#endif
  for (int64_t j = 0; j < count; ++j) StoreOutput(SumLanes(Load(lanes + j * kLanes)), y + j);
}

// Many rows: y[0..rows, begin..end). x is [tiles, steps, rows of the tile, 32].
template <typename Weights, typename Out>
void ManyRows(const DotElement* x, int64_t rows, const Weights& w, int64_t begin, int64_t end,
              Out* y, int64_t y_stride) {
  const int64_t stride = PaddedCols(w.cols);
  const int64_t chunks = (stride + kPanelCols - 1) / kPanelCols;
  const int64_t chunk = (stride / chunks + kLongStep - 1) / kLongStep * kLongStep;
  auto* panel = static_cast<DotElement*>(
      ScratchBytes(kPanelSlot, kTileCols * (kPanelCols + kLongStep) * sizeof(DotElement)));
  auto* lanes =
      static_cast<float*>(ScratchBytes(kLanesSlot, rows * kTileCols * kLanes * sizeof(float)));
  const Tiling tiling(rows, kTileRows);
  const TileFunction large = TileOf<kTileRows>(tiling.base + 1);
  const TileFunction small = TileOf<kTileRows>(tiling.base);
  for (int64_t n = begin; n < end; n += kTileCols) {
    const int64_t count = Min<int64_t>(kTileCols, end - n);
    for (int64_t k = 0; k < stride; k += chunk) {
      const int64_t cols = Min(chunk, stride - k);
      PanelWriter(w, n, count, panel).Write(k, k + cols);
      const bool last_chunk = k + chunk >= stride;
      const int64_t next_n = last_chunk ? n + kTileCols : n, next_k = last_chunk ? 0 : k + chunk;
      const int64_t next_count = Max<int64_t>(0, Min<int64_t>(kTileCols, end - next_n));
      PanelPrefetch prefetch(w, next_n, next_count, next_k, chunk);
      const int64_t lines_a_tile = (prefetch.lines() + tiling.tiles - 1) / tiling.tiles;
      for (int64_t t = 0; t < tiling.tiles; ++t) {
        prefetch.Issue(lines_a_tile);
        const int64_t m = tiling.first_row(t);
        const TileFunction tile = t < tiling.larger ? large : small;
        tile(x + m * stride + k * tiling.rows(t), panel, cols / 32, k == 0,
             lanes + m * kTileCols * kLanes);
      }
    }
    for (int64_t m = 0; m < rows; ++m) {
      StoreSums(lanes + m * kTileCols * kLanes, count, y + m * y_stride + n);
    }
  }
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
