// The operands of a product in stored form and how 64 elements of a row are expanded.
#pragma once

#include "kernels/cpu/ops/dot.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// Elements expanded at a time.
inline constexpr int64_t kStep = 64;
// Weight rows that share FP8 scales, and the unit in which threads share a product.
inline constexpr int64_t kBand = 32;

DEEPINFER_INLINE int64_t PaddedCols(int64_t cols) { return (cols + kStep - 1) / kStep * kStep; }

// Weights. Expand: elements [k, k + 64) of row n; ExpandTail: those up to the row's end, zeros
// behind, for a row that ends inside the step. Address, Bytes: where elements are stored, for
// prefetching. PrefetchScales: those of rows [n, n + count), where every row has its own. FP8 rows
// are expanded without their scales: where every weight is used once, the scales of a band go into
// the input rows instead (ScaleRows), which gives the same products.
struct Fp8Weights {
  static constexpr bool kBandScales = true;
  const uint8_t* codes;
  const uint8_t* scales;
  int64_t rows, cols;
  explicit Fp8Weights(const Fp8Matrix& w)
      : codes(w.codes), scales(w.scales), rows(w.rows), cols(w.cols) {}
  DEEPINFER_INLINE DotPair Expand(int64_t n, int64_t k) const {
    return ExpandFp8(codes + n * cols + k);
  }
  // Columns are a multiple of 32.
  DEEPINFER_INLINE DotPair ExpandTail(int64_t n, int64_t k) const {
    return ExpandFp8Half(codes + n * cols + k);
  }
  DEEPINFER_INLINE const uint8_t* BandScales(int64_t n) const {
    return scales + n / kGroup * (cols / kGroup);
  }
  DEEPINFER_INLINE const char* Address(int64_t n, int64_t k) const {
    return reinterpret_cast<const char*>(codes + n * cols + k);
  }
  static constexpr int64_t Bytes(int64_t elements) { return elements; }
  DEEPINFER_INLINE void PrefetchScales(int64_t, int64_t) const {}
};

struct Fp4Weights {
  static constexpr bool kBandScales = false;
  const uint8_t* codes;
  const uint8_t* scales;
  int64_t rows, cols;
  explicit Fp4Weights(const Fp4Matrix& w)
      : codes(w.codes), scales(w.scales), rows(w.rows), cols(w.cols) {}
  DEEPINFER_INLINE DotPair Expand(int64_t n, int64_t k) const {
    const uint8_t* s = scales + n * (cols / kGroup) + k / kGroup;
    return ExpandFp4(codes + (n * cols + k) / 2, s[0], s[1]);
  }
  DEEPINFER_INLINE DotPair ExpandTail(int64_t n, int64_t k) const {
    return ExpandFp4Half(codes + (n * cols + k) / 2, scales[n * (cols / kGroup) + k / kGroup]);
  }
  DEEPINFER_INLINE const char* Address(int64_t n, int64_t k) const {
    return reinterpret_cast<const char*>(codes + (n * cols + k) / 2);
  }
  static constexpr int64_t Bytes(int64_t elements) { return elements / 2; }
  DEEPINFER_INLINE void PrefetchScales(int64_t n, int64_t count) const {
    const uint8_t* line = scales + n * (cols / kGroup);
    for (int64_t i = 0; i < count * (cols / kGroup) + 64; i += 64) __builtin_prefetch(line + i);
  }
};

struct Bf16Weights {
  static constexpr bool kBandScales = false;
  const bf16* values;
  int64_t rows, cols;
  explicit Bf16Weights(const Bf16Matrix& w) : values(w.values), rows(w.rows), cols(w.cols) {}
  DEEPINFER_INLINE DotPair Expand(int64_t n, int64_t k) const {
    const bf16* p = values + n * cols + k;
    return {FromBf16(p), FromBf16(p + 32)};
  }
  DEEPINFER_INLINE DotPair ExpandTail(int64_t n, int64_t k) const {
    const bf16* p = values + n * cols + k;
    return {FromBf16First(p, Min<int64_t>(cols - k, 32)),
            FromBf16First(p + 32, Max<int64_t>(cols - k - 32, 0))};
  }
  DEEPINFER_INLINE const char* Address(int64_t n, int64_t k) const {
    return reinterpret_cast<const char*>(values + n * cols + k);
  }
  static constexpr int64_t Bytes(int64_t elements) { return 2 * elements; }
  DEEPINFER_INLINE void PrefetchScales(int64_t, int64_t) const {}
};

// Input row r expanded: elements [32 i, 32 i + 32) to out + i * step, i < PaddedCols(cols) / 32.
DEEPINFER_INLINE void ExpandInput(const Q8Rows& x, int64_t r, int64_t step, DotElement* out) {
  const uint8_t* codes = x.codes + r * x.cols;
  const uint8_t* scales = x.scales + r * (x.cols / kGroup);
  int64_t k = 0;
  for (; k + kStep <= x.cols; k += kStep, out += 2 * step) {
    const DotPair pair = ExpandFp8(codes + k);
    StoreDot(ScaleDot(pair.a, scales[k / kGroup]), out);
    StoreDot(ScaleDot(pair.b, scales[k / kGroup + 1]), out + step);
  }
  if (k < x.cols) {
    StoreDot(ScaleDot(ExpandFp8Half(codes + k).a, scales[k / kGroup]), out);
    StoreDot(ZeroDot(), out + step);
  }
}

DEEPINFER_INLINE void ExpandInput(const RowsView& x, int64_t r, int64_t step, DotElement* out) {
  const bf16* row = x.values + r * x.stride;
  int64_t k = 0;
  for (; k + 32 <= x.cols; k += 32, out += step) StoreDot(FromBf16(row + k), out);
  for (; k < PaddedCols(x.cols); k += 32, out += step) {
    StoreDot(FromBf16First(row + Min(k, x.cols), Max<int64_t>(x.cols - k, 0)), out);
  }
}

// An expanded row times the scales of a band of FP8 weights.
DEEPINFER_INLINE void ScaleRow(const DotElement* x, const uint8_t* scales, int64_t cols,
                               DotElement* out) {
  for (int64_t k = 0; k < cols; k += 32) {
    StoreDot(ScaleDot(LoadDot(x + k), scales[k / kGroup]), out + k);
  }
  if (cols % kStep != 0) StoreDot(ZeroDot(), out + cols);
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
