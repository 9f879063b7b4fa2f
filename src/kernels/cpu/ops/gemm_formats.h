// The operands of a product in stored form and how 64 elements of a row are expanded.
#pragma once

#include "kernels/cpu/ops/dot.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// Elements expanded at a time, and in an unrolled step.
inline constexpr int64_t kStep = 64, kLongStep = 128;
// Weight rows that share FP8 scales, and the unit in which threads share a product.
inline constexpr int64_t kBand = 32;

DEEPINFER_INLINE int64_t PaddedCols(int64_t cols) { return (cols + kStep - 1) / kStep * kStep; }

// Bytes at one place of up to eight rows, `stride` apart. Two bases and two strides reach each of
// them by an address that costs the processor nothing.
class RowBytes {
 public:
  RowBytes(const uint8_t* first, int64_t stride)
      : first_(first), fifth_(first + 4 * stride), stride_(stride), stride3_(3 * stride) {}
  DEEPINFER_INLINE const uint8_t* operator[](int j) const {
    const uint8_t* base = j < 4 ? first_ : fifth_;
    const int i = j % 4;
    return i == 3 ? base + stride3_ : base + i * stride_;
  }
  DEEPINFER_INLINE void Advance(int64_t bytes) {
    first_ += bytes;
    fifth_ += bytes;
  }

 private:
  const uint8_t* first_;
  const uint8_t* fifth_;
  int64_t stride_, stride3_;
};

// Weights. Rows: up to eight rows from row n on, that move along K by kLongStep elements;
// Expand<i>(j): elements [64 i, 64 i + 64) of the present step of row n + j. ExpandEnd: elements
// [k, k + 64) of row n, zeros behind the row's end.
// Order(v): 32 elements of an input in the order in which those of the weights are expanded.
// Address: where elements are stored, for prefetching. FP8 rows are expanded without their scales:
// where every weight is used once, the scales of a band go into the input rows instead (ScaleRow),
// which gives the same products.
struct Fp8Weights {
  static constexpr bool kBandScales = true;
  const uint8_t* codes;
  const uint8_t* scales;
  int64_t rows, cols;
  explicit Fp8Weights(const Fp8Matrix& w)
      : codes(w.codes), scales(w.scales), rows(w.rows), cols(w.cols) {}

  class Rows {
   public:
    Rows(const Fp8Weights& w, int64_t n, int64_t k) : codes_(w.codes + n * w.cols + k, w.cols) {}
    template <int i>
    DEEPINFER_INLINE DotPair Expand(int j) const {
      return ExpandFp8(codes_[j] + 64 * i);
    }
    DEEPINFER_INLINE void Advance() { codes_.Advance(kLongStep); }

   private:
    RowBytes codes_;
  };
  // Columns are a multiple of 32.
  DEEPINFER_INLINE DotPair ExpandEnd(int64_t n, int64_t k) const {
    const uint8_t* c = codes + n * cols + k;
    return k + kStep <= cols ? ExpandFp8(c) : ExpandFp8Half(c);
  }
  static DEEPINFER_INLINE DotVec Order(DotVec v) { return v; }
  DEEPINFER_INLINE const uint8_t* BandScales(int64_t n) const {
    return scales + n / kGroup * (cols / kGroup);
  }
  DEEPINFER_INLINE const char* Address(int64_t n, int64_t k) const {
    return reinterpret_cast<const char*>(codes + n * cols + k);
  }
  static constexpr int64_t Bytes(int64_t elements) { return elements; }
};

struct Fp4Weights {
  static constexpr bool kBandScales = false;
  const uint8_t* codes;
  const uint8_t* scales;
  int64_t rows, cols;
  explicit Fp4Weights(const Fp4Matrix& w)
      : codes(w.codes), scales(w.scales), rows(w.rows), cols(w.cols) {}

  class Rows {
   public:
    Rows(const Fp4Weights& w, int64_t n, int64_t k)
        : codes_(w.codes + (n * w.cols + k) / 2, w.cols / 2),
          scales_(w.scales + n * (w.cols / kGroup) + k / kGroup, w.cols / kGroup) {}
    template <int i>
    DEEPINFER_INLINE DotPair Expand(int j) const {
      // The step's four scales at once: loads are what limits this loop.
      uint32_t four;
      __builtin_memcpy(&four, scales_[j], sizeof(four));
      return ExpandFp4Shuffled(codes_[j] + 32 * i, static_cast<uint8_t>(four >> 16 * i),
                               static_cast<uint8_t>(four >> (16 * i + 8)));
    }
    DEEPINFER_INLINE void Advance() {
      codes_.Advance(kLongStep / 2);
      scales_.Advance(kLongStep / kGroup);
    }

   private:
    RowBytes codes_, scales_;
  };
  DEEPINFER_INLINE DotPair ExpandEnd(int64_t n, int64_t k) const {
    const uint8_t* c = codes + (n * cols + k) / 2;
    const uint8_t* s = scales + n * (cols / kGroup) + k / kGroup;
    return k + kStep <= cols ? ExpandFp4Shuffled(c, s[0], s[1]) : ExpandFp4ShuffledHalf(c, s[0]);
  }
  static DEEPINFER_INLINE DotVec Order(DotVec v) { return ShuffleAsFp4(v); }
  DEEPINFER_INLINE const char* Address(int64_t n, int64_t k) const {
    return reinterpret_cast<const char*>(codes + (n * cols + k) / 2);
  }
  static constexpr int64_t Bytes(int64_t elements) { return elements / 2; }
};

struct Bf16Weights {
  static constexpr bool kBandScales = false;
  const bf16* values;
  int64_t rows, cols;
  explicit Bf16Weights(const Bf16Matrix& w) : values(w.values), rows(w.rows), cols(w.cols) {}

  class Rows {
   public:
    Rows(const Bf16Weights& w, int64_t n, int64_t k)
        : bytes_(reinterpret_cast<const uint8_t*>(w.values + n * w.cols + k), 2 * w.cols) {}
    template <int i>
    DEEPINFER_INLINE DotPair Expand(int j) const {
      const bf16* p = reinterpret_cast<const bf16*>(bytes_[j]) + 64 * i;
      return {FromBf16(p), FromBf16(p + 32)};
    }
    DEEPINFER_INLINE void Advance() { bytes_.Advance(2 * kLongStep); }

   private:
    RowBytes bytes_;
  };
  DEEPINFER_INLINE DotPair ExpandEnd(int64_t n, int64_t k) const {
    const bf16* p = values + n * cols + k;
    return {FromBf16First(p, Min<int64_t>(cols - k, 32)),
            FromBf16First(p + 32, Min<int64_t>(Max<int64_t>(cols - k - 32, 0), 32))};
  }
  static DEEPINFER_INLINE DotVec Order(DotVec v) { return v; }
  DEEPINFER_INLINE const char* Address(int64_t n, int64_t k) const {
    return reinterpret_cast<const char*>(values + n * cols + k);
  }
  static constexpr int64_t Bytes(int64_t elements) { return 2 * elements; }
};

// Input row r expanded in the order of `Weights`: elements [32 i, 32 i + 32) to out + i * step,
// i < PaddedCols(cols) / 32.
template <typename Weights>
DEEPINFER_INLINE void ExpandInput(const Q8Rows& x, int64_t r, int64_t step, DotElement* out) {
  const uint8_t* codes = x.codes + r * x.cols;
  const uint8_t* scales = x.scales + r * (x.cols / kGroup);
  int64_t k = 0;
  for (; k + kStep <= x.cols; k += kStep, out += 2 * step) {
    const DotPair pair = ExpandFp8(codes + k);
    StoreDot(Weights::Order(ScaleDot(pair.a, scales[k / kGroup])), out);
    StoreDot(Weights::Order(ScaleDot(pair.b, scales[k / kGroup + 1])), out + step);
  }
  if (k < x.cols) {
    StoreDot(Weights::Order(ScaleDot(ExpandFp8Half(codes + k).a, scales[k / kGroup])), out);
    StoreDot(ZeroDot(), out + step);
  }
}

template <typename Weights>
DEEPINFER_INLINE void ExpandInput(const RowsView& x, int64_t r, int64_t step, DotElement* out) {
  const bf16* row = x.values + r * x.stride;
  int64_t k = 0;
  for (; k + 32 <= x.cols; k += 32, out += step) StoreDot(Weights::Order(FromBf16(row + k)), out);
  for (; k < PaddedCols(x.cols); k += 32, out += step) {
    StoreDot(Weights::Order(FromBf16First(row + Min(k, x.cols), Max<int64_t>(x.cols - k, 0))), out);
  }
}

// A tile of expanded rows [steps, rows, 32] times the scales of a band of FP8 weights.
DEEPINFER_INLINE void ScaleTile(const DotElement* x, int64_t rows, const uint8_t* scales,
                                int64_t cols, DotElement* out) {
  for (int64_t k = 0; k < cols; k += 32) {
    for (int64_t m = 0; m < rows; ++m, x += 32, out += 32) {
      StoreDot(ScaleDot(LoadDot(x), scales[k / kGroup]), out);
    }
  }
  if (cols % kStep == 0) return;
  for (int64_t m = 0; m < rows; ++m, out += 32) StoreDot(ZeroDot(), out);
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
