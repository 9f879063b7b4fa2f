// Products of input rows with quantised weights (spec model-v41 section 2.0).
//
// Every output is one chain of DotAdd over its row of K, in ascending steps of 32 from zero, and
// one tree sum of the 16 lanes at the end: the same for every number of rows, so that a row's
// result depends on nothing else. Few rows: weights are expanded in registers and used at once.
// Many rows: a panel of weight rows is expanded into the L1 cache and used for all rows of a block.
#include "kernels/cpu/ops/gemm.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/gemm_formats.h"
#include "kernels/cpu/scratch.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

// Up to here weights are expanded in registers.
constexpr int64_t kFewRows = 4;
// Elements of K a panel holds at most: the panel should stay in the L1 cache while the inputs
// stream by.
constexpr int64_t kPanelCols =
    16 * 1024 / (kTileCols * static_cast<int64_t>(sizeof(DotElement))) / kStep * kStep;
// Bytes of expanded input rows kept together: they should stay in the L2 cache.
constexpr int64_t kInputBlockBytes = 700 * 1024;
// Rows of a block.
constexpr int64_t kMinBlockRows = 12, kMaxBlockRows = 96;
// Work (weight bytes, or operations at the same rate) below which a second thread does not pay.
constexpr double kMinShareCost = 24 * 1024;

enum ScratchSlot { kInputSlot, kScaledSlot, kPanelSlot, kLanesSlot };

DEEPINFER_INLINE void StoreOutput(float value, bf16* y) { *y = NearestBf16(value); }
DEEPINFER_INLINE void StoreOutput(float value, float* y) { *y = value; }

// y[m, n..n+cols) for the expanded rows x [rows, stride], weights expanded in registers.
template <int rows, int cols, typename Weights, typename Out>
DEEPINFER_INLINE void Gemv(const DotElement* x, int64_t stride, const Weights& w, int64_t n, Out* y,
                           int64_t y_stride) {
  F32x16 acc[rows][cols];
  for (int m = 0; m < rows; ++m) {
    for (int j = 0; j < cols; ++j) acc[m][j] = Zero();
  }
  w.PrefetchScales(n + cols, cols);
  int64_t k = 0;
  for (; k + kStep <= w.cols; k += kStep) {
#pragma GCC unroll 8
    for (int j = 0; j < cols; ++j) {
      // The next rows' bytes: rows in flight are short streams that the processor's own prefetching
      // hardly gets hold of.
      __builtin_prefetch(w.Address(n + cols + j, k));
      const DotPair pair = w.Expand(n + j, k);
#pragma GCC unroll 4
      for (int m = 0; m < rows; ++m) {
        acc[m][j] = DotAdd(acc[m][j], LoadDot(x + m * stride + k), pair.a);
        acc[m][j] = DotAdd(acc[m][j], LoadDot(x + m * stride + k + 32), pair.b);
      }
    }
  }
  if (k < w.cols) {
    for (int j = 0; j < cols; ++j) {
      const DotPair pair = w.ExpandTail(n + j, k);
      for (int m = 0; m < rows; ++m) {
        acc[m][j] = DotAdd(acc[m][j], LoadDot(x + m * stride + k), pair.a);
        acc[m][j] = DotAdd(acc[m][j], LoadDot(x + m * stride + k + 32), pair.b);
      }
    }
  }
  for (int m = 0; m < rows; ++m) {
    for (int j = 0; j < cols; ++j) StoreOutput(SumLanes(acc[m][j]), y + m * y_stride + n + j);
  }
}

// Few rows: y[m, begin..end).
template <int rows, typename Weights, typename Out>
void FewRows(const DotElement* x, const Weights& w, int64_t begin, int64_t end, Out* y,
             int64_t y_stride) {
  constexpr int kCols = rows == 1 ? kGemvCols : kGemvColsFew;
  const int64_t stride = PaddedCols(w.cols);
  const DotElement* input = x;
  for (int64_t band = begin; band < end; band = (band / kBand + 1) * kBand) {
    if constexpr (Weights::kBandScales) {
      auto* scaled =
          static_cast<DotElement*>(ScratchBytes(kScaledSlot, rows * stride * sizeof(DotElement)));
      for (int m = 0; m < rows; ++m) {
        ScaleRow(x + m * stride, w.BandScales(band), w.cols, scaled + m * stride);
      }
      input = scaled;
    }
    const int64_t band_end = Min(end, (band / kBand + 1) * kBand);
    int64_t n = band;
    for (; n + kCols <= band_end; n += kCols) Gemv<rows, kCols>(input, stride, w, n, y, y_stride);
    for (; n < band_end; ++n) Gemv<rows, 1>(input, stride, w, n, y, y_stride);
  }
}

// Many rows are cut into tiles of nearly equal size, at most kTileRows.
struct Tiling {
  int64_t tiles, base, larger;  // the first `larger` tiles have base + 1 rows
  explicit Tiling(int64_t rows)
      : tiles((rows + kTileRows - 1) / kTileRows), base(rows / tiles), larger(rows % tiles) {}
  int64_t first_row(int64_t tile) const { return tile * base + Min(tile, larger); }
  int64_t rows(int64_t tile) const { return base + (tile < larger ? 1 : 0); }
};

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
// scaled; rows behind are zero.
template <typename Weights>
DEEPINFER_INLINE void ExpandPanel(const Weights& w, int64_t n, int64_t count, int64_t k,
                                  int64_t cols, DotElement* panel) {
  constexpr int64_t step = kTileCols * 32;
  for (int64_t i = k; i < k + cols; i += kStep, panel += 2 * step) {
    const bool whole = i + kStep <= w.cols;
    // One pair of scales for all rows: a panel lies inside a band.
    uint8_t scales[2] = {127, 127};
    if constexpr (Weights::kBandScales) {
      const uint8_t* band = w.BandScales(n) + i / kGroup;
      scales[0] = band[0];
      if (whole) scales[1] = band[1];
    }
#pragma GCC unroll 8
    for (int j = 0; j < kTileCols; ++j) {
      DotPair pair = {ZeroDot(), ZeroDot()};
      if (j < count) pair = whole ? w.Expand(n + j, i) : w.ExpandTail(n + j, i);
      if constexpr (Weights::kBandScales) {
        pair = {ScaleDot(pair.a, scales[0]), ScaleDot(pair.b, scales[1])};
      }
      StoreDot(pair.a, panel + j * 32);
      StoreDot(pair.b, panel + step + j * 32);
    }
  }
}

// Asks for the bytes that the next ExpandPanel will read, a few lines at a time, so that reading
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
      __builtin_prefetch(line_);
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
  const int64_t chunk = (stride / chunks + kStep - 1) / kStep * kStep;
  auto* panel = static_cast<DotElement*>(
      ScratchBytes(kPanelSlot, kTileCols * (kPanelCols + kStep) * sizeof(DotElement)));
  auto* lanes =
      static_cast<float*>(ScratchBytes(kLanesSlot, rows * kTileCols * kLanes * sizeof(float)));
  const Tiling tiling(rows);
  const TileFunction large = TileOf<kTileRows>(tiling.base + 1);
  const TileFunction small = TileOf<kTileRows>(tiling.base);
  for (int64_t n = begin; n < end; n += kTileCols) {
    const int64_t count = Min<int64_t>(kTileCols, end - n);
    for (int64_t k = 0; k < stride; k += chunk) {
      const int64_t cols = Min(chunk, stride - k);
      ExpandPanel(w, n, count, k, cols, panel);
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

template <typename Weights, typename Out>
void Product(const DotElement* x, int64_t rows, const Weights& w, int64_t begin, int64_t end,
             Out* y, int64_t y_stride) {
  switch (rows) {
    case 1:
      return FewRows<1>(x, w, begin, end, y, y_stride);
    case 2:
      return FewRows<2>(x, w, begin, end, y, y_stride);
    case 3:
      return FewRows<3>(x, w, begin, end, y, y_stride);
    case 4:
      return FewRows<4>(x, w, begin, end, y, y_stride);
    default:
      return ManyRows(x, rows, w, begin, end, y, y_stride);
  }
}
static_assert(kFewRows == 4);

// Rows [begin, end) of the weights for all rows of an item.
template <typename Input, typename Weights, typename Out>
void RunBands(const GemmItem& item, const Input& input, const Weights& w, int64_t begin,
              int64_t end, Out* y) {
  const int64_t rows = item.rows(), stride = PaddedCols(w.cols);
  const int64_t fitting = kInputBlockBytes / (stride * static_cast<int64_t>(sizeof(DotElement))) /
                          kMinBlockRows * kMinBlockRows;
  const int64_t block_rows = Max(kMinBlockRows, Min(kMaxBlockRows, fitting));
  for (int64_t m = 0; m < rows; m += block_rows) {
    const int64_t count = Min(block_rows, rows - m);
    auto* x =
        static_cast<DotElement*>(ScratchBytes(kInputSlot, count * stride * sizeof(DotElement)));
    const auto row_at = [&](int64_t i) {
      return item.gather == nullptr ? m + i : item.gather[m + i];
    };
    if (count <= kFewRows) {
      for (int64_t i = 0; i < count; ++i) ExpandInput(input, row_at(i), 32, x + i * stride);
    } else {
      const Tiling tiling(count);
      for (int64_t t = 0; t < tiling.tiles; ++t) {
        const int64_t first = tiling.first_row(t), tile_rows = tiling.rows(t);
        for (int64_t i = 0; i < tile_rows; ++i) {
          ExpandInput(input, row_at(first + i), tile_rows * 32, x + first * stride + i * 32);
        }
      }
    }
    Product(x, count, w, begin, end, y + m * item.y_stride, item.y_stride);
  }
}

void RunItem(const GemmItem& item, int64_t begin, int64_t end) {
  switch (item.kind) {
    case GemmKind::kQ8Fp8:
      return RunBands(item, item.q8, Fp8Weights(item.fp8), begin, end, static_cast<bf16*>(item.y));
    case GemmKind::kQ8Fp4:
      return RunBands(item, item.q8, Fp4Weights(item.fp4), begin, end, static_cast<bf16*>(item.y));
    case GemmKind::kBf16Fp8:
      return RunBands(item, item.x, Fp8Weights(item.fp8), begin, end, static_cast<bf16*>(item.y));
    case GemmKind::kBf16:
      return RunBands(item, item.x, Bf16Weights(item.bf16w), begin, end,
                      static_cast<bf16*>(item.y));
    case GemmKind::kBf16F32:
      return RunBands(item, item.x, Bf16Weights(item.bf16w), begin, end,
                      static_cast<float*>(item.y));
  }
}

// Cost of one band in bytes read, or in multiplications at the rate at which they pass.
double BandCost(const GemmItem& item) {
  const double element = item.kind == GemmKind::kQ8Fp8 || item.kind == GemmKind::kBf16Fp8 ? 1.0
                         : item.kind == GemmKind::kQ8Fp4                                  ? 0.6
                                                                                          : 2.0;
  const double rows = static_cast<double>(item.rows());
  return static_cast<double>(kBand * item.inputs()) * (element + 0.2 * rows);
}

int64_t Bands(const GemmItem& item) {
  return item.rows() == 0 ? 0 : (item.outputs() + kBand - 1) / kBand;
}

// The bands of all items, one after the other, whose middle lies in [from, to) of the total cost.
void RunCostRange(const GemmItem* items, int64_t count, double from, double to) {
  double start = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t bands = Bands(items[i]);
    const double cost = BandCost(items[i]);
    const auto band_at = [&](double at) {
      const double b = (at - start) / cost + 0.5;
      return b <= 0                            ? int64_t{0}
             : b >= static_cast<double>(bands) ? bands
                                               : static_cast<int64_t>(b);
    };
    const int64_t first = bands == 0 ? 0 : band_at(from), last = bands == 0 ? 0 : band_at(to);
    if (first < last) RunItem(items[i], first * kBand, Min(items[i].outputs(), last * kBand));
    start += cost * static_cast<double>(bands);
  }
}

}  // namespace

void Gemm(ThreadPool& pool, const GemmItem* items, int64_t count) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    total += BandCost(items[i]) * static_cast<double>(Bands(items[i]));
  }
  const auto wanted = static_cast<int64_t>(total / kMinShareCost);
  const int64_t shares = Max<int64_t>(1, Min<int64_t>(pool.size(), wanted));
  pool.ParallelFor(shares, 1, [&](int64_t begin, int64_t end, int) {
    const double share = total / static_cast<double>(shares);
    RunCostRange(items, count, share * static_cast<double>(begin),
                 end == shares ? 2 * total : share * static_cast<double>(end));
  });
}

void GemmOnCaller(const GemmItem& item) { RunItem(item, 0, item.outputs()); }

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
