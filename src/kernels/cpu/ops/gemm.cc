// Products of input rows with quantised weights (spec model-v41 section 2.0).
//
// Every output is one chain of DotAdd over its row of K, in ascending steps of 32 from zero, and
// one tree sum of the 16 lanes at the end: the same for every number of rows, so that a row's
// result depends on nothing else. Few rows: weights are expanded in registers and used at once.
// Many rows: a panel of weight rows is expanded into the L1 cache and used for all rows of a block.
#include "kernels/cpu/ops/gemm.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/gemm_few.h"
#include "kernels/cpu/ops/gemm_many.h"
#include "kernels/cpu/scratch.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

// Input rows of a tile whose weights are expanded in registers.
constexpr int64_t kFewTileRows = 4;
// Bytes of expanded input rows kept together: they should stay in the L2 cache.
constexpr int64_t kInputBlockBytes = 700 * 1024;
// Rows of a block.
constexpr int64_t kMinBlockRows = 12, kMaxBlockRows = 96;
// Work (weight bytes, or operations at the same rate) below which a second thread does not pay.
constexpr double kMinShareCost = 24 * 1024;

template <typename Weights, typename Out>
void FewTileRows(int64_t rows, const DotElement* x, const Weights& w, int64_t begin, int64_t end,
                 Out* y, int64_t y_stride) {
  WithCount<kFewTileRows>(
      rows, [&](auto count) { FewRows<decltype(count)::value>(x, w, begin, end, y, y_stride); });
}

// y[0..rows, begin..end) for expanded rows in tiles of at most kFewTileRows.
template <typename Weights, typename Out>
void Few(const DotElement* x, int64_t rows, const Weights& w, int64_t begin, int64_t end, Out* y,
         int64_t y_stride) {
  const int64_t stride = PaddedCols(w.cols);
  const Tiling tiling(rows, kFewTileRows);
  // Weights of a band go from one tile to the next through the cache.
  for (int64_t band = begin; band < end; band = (band / kBand + 1) * kBand) {
    const int64_t band_end = Min(end, (band / kBand + 1) * kBand);
    for (int64_t t = 0; t < tiling.tiles; ++t) {
      const int64_t m = tiling.first_row(t);
      const DotElement* input = x + m * stride;
      if constexpr (Weights::kBandScales) {
        auto* scaled = static_cast<DotElement*>(
            ScratchBytes(kScaledSlot, kFewTileRows * stride * sizeof(DotElement)));
        ScaleTile(input, tiling.rows(t), w.BandScales(band), w.cols, scaled);
        input = scaled;
      }
      FewTileRows(tiling.rows(t), input, w, band, band_end, y + m * y_stride, y_stride);
    }
  }
}

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
    const Tiling tiling(count, count <= kFewRows ? kFewTileRows : kTileRows);
    for (int64_t t = 0; t < tiling.tiles; ++t) {
      const int64_t first = tiling.first_row(t), tile_rows = tiling.rows(t);
      for (int64_t i = 0; i < tile_rows; ++i) {
        const int64_t row = m + first + i;
        ExpandInput<Weights>(input, item.gather == nullptr ? row : item.gather[row], tile_rows * 32,
                             x + first * stride + i * 32);
      }
    }
    const auto product = count <= kFewRows ? Few<Weights, Out> : ManyRows<Weights, Out>;
    product(x, count, w, begin, end, y + m * item.y_stride, item.y_stride);
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
