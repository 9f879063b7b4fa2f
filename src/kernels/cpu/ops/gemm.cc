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
// Elements of K a panel holds: four rows of it fit a half of the L1 cache.
constexpr int64_t kPanelCols = 1024;
// Bytes of expanded input rows kept together: they should stay in the L2 cache.
constexpr int64_t kInputBlockBytes = 640 * 1024;
// Rows of a block: a multiple of every tile's rows.
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
  int64_t k = 0;
  for (; k + kStep <= w.cols; k += kStep) {
#pragma GCC unroll 8
    for (int j = 0; j < cols; ++j) {
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

// lanes[m][j] += x_m . w_j over `cols` elements (a multiple of 32).
template <int rows>
DEEPINFER_INLINE void Tile(const DotElement* x, int64_t stride, const DotElement* panel,
                           int64_t cols, bool first, float* lanes) {
  F32x16 acc[rows][kTileCols];
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 8
    for (int j = 0; j < kTileCols; ++j) {
      acc[m][j] = first ? Zero() : Load(lanes + (m * kTileCols + j) * kLanes);
    }
  }
  for (int64_t k = 0; k < cols; k += 32) {
    DotVec xk[rows];
#pragma GCC unroll 8
    for (int m = 0; m < rows; ++m) xk[m] = LoadDot(x + m * stride + k);
#pragma GCC unroll 8
    for (int j = 0; j < kTileCols; ++j) {
      const DotVec wk = LoadDot(panel + j * kPanelCols + k);
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

// Elements [k, k + cols) of weight rows [n, n + count) into the panel, scaled; rows behind are
// zero.
template <typename Weights>
DEEPINFER_INLINE void ExpandPanel(const Weights& w, int64_t n, int64_t count, int64_t k,
                                  int64_t cols, DotElement* panel) {
  for (int64_t j = 0; j < kTileCols; ++j) {
    DotElement* row = panel + j * kPanelCols;
    if (j >= count) {
      for (int64_t i = 0; i < cols; i += 32) StoreDot(ZeroDot(), row + i);
      continue;
    }
    for (int64_t i = 0; i < cols; i += kStep) {
      DotPair pair = k + i + kStep <= w.cols ? w.Expand(n + j, k + i) : w.ExpandTail(n + j, k + i);
      if constexpr (Weights::kBandScales) {
        const uint8_t* scales = w.BandScales(n + j) + (k + i) / kGroup;
        pair.a = ScaleDot(pair.a, scales[0]);
        if (k + i + 32 < w.cols) pair.b = ScaleDot(pair.b, scales[1]);
      }
      StoreDot(pair.a, row + i);
      StoreDot(pair.b, row + i + 32);
    }
  }
}

// Many rows: y[0..rows, begin..end).
template <typename Weights, typename Out>
void ManyRows(const DotElement* x, int64_t rows, const Weights& w, int64_t begin, int64_t end,
              Out* y, int64_t y_stride) {
  const int64_t stride = PaddedCols(w.cols);
  auto* panel = static_cast<DotElement*>(
      ScratchBytes(kPanelSlot, kTileCols * kPanelCols * sizeof(DotElement)));
  auto* lanes = static_cast<float*>(
      ScratchBytes(kLanesSlot, (rows + kTileRows) * kTileCols * kLanes * sizeof(float)));
  for (int64_t n = begin; n < end; n += kTileCols) {
    const int64_t count = Min<int64_t>(kTileCols, end - n);
    for (int64_t k = 0; k < stride; k += kPanelCols) {
      const int64_t cols = Min(kPanelCols, stride - k);
      ExpandPanel(w, n, count, k, cols, panel);
      int64_t m = 0;
      for (; m + kTileRows <= rows; m += kTileRows) {
        Tile<kTileRows>(x + m * stride + k, stride, panel, cols, k == 0,
                        lanes + m * kTileCols * kLanes);
      }
      for (; m + 2 <= rows; m += 2) {
        Tile<2>(x + m * stride + k, stride, panel, cols, k == 0, lanes + m * kTileCols * kLanes);
      }
      for (; m < rows; ++m) {
        Tile<1>(x + m * stride + k, stride, panel, cols, k == 0, lanes + m * kTileCols * kLanes);
      }
    }
    for (int64_t m = 0; m < rows; ++m) {
      const float* row = lanes + m * kTileCols * kLanes;
      float sums[kTileCols];
      if constexpr (kTileCols == 4) {
        SumLanes4(Load(row), Load(row + kLanes), Load(row + 2 * kLanes), Load(row + 3 * kLanes),
                  sums);
      } else {
        for (int j = 0; j < kTileCols; ++j) sums[j] = SumLanes(Load(row + j * kLanes));
      }
      for (int64_t j = 0; j < count; ++j) StoreOutput(sums[j], y + m * y_stride + n + j);
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
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = item.gather == nullptr ? m + i : item.gather[m + i];
      ExpandInput(input, row, x + i * stride);
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
