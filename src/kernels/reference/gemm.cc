// Matrix products. Like exact_dot.cc this file is compiled with product and sum contracted: every
// product here is exact, so results stay the same bits with and without (reference.h).
#include <algorithm>

#include "kernels/reference/decode.h"
#include "kernels/reference/kernels.h"
#include "kernels/reference/lanes.h"

namespace deepinfer::kernels::reference {
namespace {

// Rows of x expanded together: their fp32 copy (rows * K * 4 bytes) should stay in the L2 cache.
constexpr int64_t kRowBlock = 32;
// Weight rows expanded together, each reused for all rows of the block.
constexpr int64_t kColumnTile = 4;
constexpr int64_t kRowTile = 4;

// Expands row n of a matrix to fp32 [K].
struct Fp8Rows {
  Fp8Matrix w;
  DEEPINFER_INLINE void Decode(int64_t n, float* out) const {
    DecodeE4M3(w.codes + n * w.cols, w.scales + n / kGroup * (w.cols / kGroup), w.cols, out);
  }
};
struct Fp4Rows {
  Fp4Matrix w;
  DEEPINFER_INLINE void Decode(int64_t n, float* out) const {
    const uint8_t* scales = w.scales + n * (w.cols / kGroup);
    DecodeE2M1<kGroup>(
        w.codes + n * w.cols / 2, w.cols, [scales](int64_t g) { return ScaleOf(scales[g]); }, out);
  }
};
struct Bf16Rows {
  Bf16Matrix w;
  DEEPINFER_INLINE void Decode(int64_t n, float* out) const {
    DecodeBf16(w.values + n * w.cols, w.cols, out);
  }
};

// Rows padded to whole lanes; the padding is zero and adds nothing.
constexpr int64_t PaddedCols(int64_t cols) { return CeilDiv(cols, kLanes) * kLanes; }

DEEPINFER_INLINE void PadRow(float* row, int64_t cols) {
  for (int64_t k = cols; k < PaddedCols(cols); ++k) row[k] = 0;
}

// sums[i][j] = x_i . w_j over padded rows of `stride` values.
template <int rows>
DEEPINFER_INLINE void DotTile(const float* x, const float* w, int64_t stride,
                              float (&sums)[rows][kColumnTile]) {
  Lanes acc[rows][kColumnTile] = {};
  for (int64_t k = 0; k < stride; k += kLanes) {
    Lanes wk[kColumnTile];
    for (int64_t j = 0; j < kColumnTile; ++j) LoadLanes(w + j * stride + k, wk[j]);
    for (int i = 0; i < rows; ++i) {
      Lanes xk;
      LoadLanes(x + i * stride + k, xk);
      for (int64_t j = 0; j < kColumnTile; ++j) acc[i][j] += xk * wk[j];
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < kColumnTile; ++j) sums[i][j] = SumLanes(acc[i][j]);
  }
}

DEEPINFER_INLINE void Store(float value, float* y) { *y = value; }
DEEPINFER_INLINE void Store(float value, bf16* y) { *y = ToBf16(value); }

// y[m, n] for the rows of x and n in [begin, end).
template <typename Weights, typename Out>
DEEPINFER_INLINE void Product(const float* x, int64_t rows, const Weights& weights, int64_t begin,
                              int64_t end, Out* y, int64_t y_stride) {
  const int64_t cols = weights.w.cols, stride = PaddedCols(cols);
  float* tile = Scratch(1, kColumnTile * stride);
  for (int64_t n = begin; n < end; n += kColumnTile) {
    const int64_t columns = std::min(kColumnTile, end - n);
    for (int64_t j = 0; j < columns; ++j) {
      weights.Decode(n + j, tile + j * stride);
      PadRow(tile + j * stride, cols);
    }
    int64_t m = 0;
    for (; m + kRowTile <= rows; m += kRowTile) {
      float sums[kRowTile][kColumnTile];
      DotTile<kRowTile>(x + m * stride, tile, stride, sums);
      for (int64_t i = 0; i < kRowTile; ++i) {
        for (int64_t j = 0; j < columns; ++j) Store(sums[i][j], y + (m + i) * y_stride + n + j);
      }
    }
    for (; m < rows; ++m) {
      float sums[1][kColumnTile];
      DotTile<1>(x + m * stride, tile, stride, sums);
      for (int64_t j = 0; j < columns; ++j) Store(sums[0][j], y + m * y_stride + n + j);
    }
  }
}

#define DEEPINFER_PRODUCT(NAME, WEIGHTS, OUT)                                                     \
  DEEPINFER_MULTIVERSION void NAME(const float* x, int64_t rows, const WEIGHTS& w, int64_t begin, \
                                   int64_t end, OUT* y, int64_t y_stride) {                       \
    Product(x, rows, w, begin, end, y, y_stride);                                                 \
  }
DEEPINFER_PRODUCT(ProductFp8, Fp8Rows, bf16)
DEEPINFER_PRODUCT(ProductFp4, Fp4Rows, bf16)
DEEPINFER_PRODUCT(ProductBf16, Bf16Rows, bf16)
DEEPINFER_PRODUCT(ProductBf16F32, Bf16Rows, float)
#undef DEEPINFER_PRODUCT

DEEPINFER_MULTIVERSION void ExpandQ8(const Q8Rows& x, int64_t begin, int64_t end, float* out) {
  const int64_t stride = PaddedCols(x.cols);
  for (int64_t m = begin; m < end; ++m) {
    DecodeE4M3(x.codes + m * x.cols, x.scales + m * (x.cols / kGroup), x.cols,
               out + (m - begin) * stride);
    PadRow(out + (m - begin) * stride, x.cols);
  }
}

DEEPINFER_MULTIVERSION void ExpandBf16(const RowsView& x, int64_t begin, int64_t end, float* out) {
  const int64_t stride = PaddedCols(x.cols);
  for (int64_t m = begin; m < end; ++m) {
    DecodeBf16(x.values + m * x.stride, x.cols, out + (m - begin) * stride);
    PadRow(out + (m - begin) * stride, x.cols);
  }
}

// One input row, expanded to PaddedCols values.
void ExpandRow(const Q8Rows& x, int64_t row, float* out) { ExpandQ8(x, row, row + 1, out); }
void ExpandRow(const RowsView& x, int64_t row, float* out) { ExpandBf16(x, row, row + 1, out); }

// Output columns are split over the threads: each weight is expanded once a block of rows.
template <typename Rows, typename Weights, typename Out>
void RunItem(ThreadPool& pool, const GemmItem& item, const Rows& x, const Weights& weights, Out* y,
             void (*product)(const float*, int64_t, const Weights&, int64_t, int64_t, Out*,
                             int64_t)) {
  const int64_t stride = PaddedCols(x.cols);
  pool.ParallelFor(weights.w.rows, kColumnTile, [&](int64_t begin, int64_t end, int) {
    for (int64_t m = 0; m < item.rows(); m += kRowBlock) {
      const int64_t rows = std::min(kRowBlock, item.rows() - m);
      float* expanded = Scratch(0, kRowBlock * stride);
      for (int64_t i = 0; i < rows; ++i) {
        ExpandRow(x, item.gather == nullptr ? m + i : item.gather[m + i], expanded + i * stride);
      }
      product(expanded, rows, weights, begin, end, y + m * item.y_stride, item.y_stride);
    }
  });
}

}  // namespace

void Gemm(ThreadPool& pool, const GemmItem* items, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const GemmItem& item = items[i];
    auto* y = static_cast<bf16*>(item.y);
    switch (item.kind) {
      case GemmKind::kQ8Fp8:
        RunItem(pool, item, item.q8, Fp8Rows{item.fp8}, y, ProductFp8);
        break;
      case GemmKind::kQ8Fp4:
        RunItem(pool, item, item.q8, Fp4Rows{item.fp4}, y, ProductFp4);
        break;
      case GemmKind::kBf16Fp8:
        RunItem(pool, item, item.x, Fp8Rows{item.fp8}, y, ProductFp8);
        break;
      case GemmKind::kBf16:
        RunItem(pool, item, item.x, Bf16Rows{item.bf16w}, y, ProductBf16);
        break;
      case GemmKind::kBf16F32:
        RunItem(pool, item, item.x, Bf16Rows{item.bf16w}, static_cast<float*>(item.y),
                ProductBf16F32);
        break;
    }
  }
}

}  // namespace deepinfer::kernels::reference
