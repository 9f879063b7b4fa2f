// Expansion of stored codes to fp32. Bit arithmetic instead of tables, so that the loops vectorise.
// Codes and scales hold no NaN (weights are checked at load, caches are written by us).
#pragma once

#include <bit>

#include "kernels/kernel_table.h"
#include "kernels/reference/lanes.h"

namespace deepinfer::kernels::reference {

DEEPINFER_INLINE float ScaleOf(uint8_t e8m0) {
  return e8m0 == 0 ? 0x1p-127f : std::bit_cast<float>(uint32_t{e8m0} << 23);
}

// See E4M3ToFloat: exponent and mantissa move into place, then the bias is corrected.
DEEPINFER_INLINE float E4M3Value(uint32_t c) {
  return std::bit_cast<float>((c & 0x7fu) << 20 | (c & 0x80u) << 24) * 0x1p120f;
}

DEEPINFER_INLINE float E2M1Value(uint32_t c) {
  return std::bit_cast<float>((c & 7u) << 22 | (c & 8u) << 28) * 0x1p126f;
}

// e4m3 with one e8m0 scale per 32.
DEEPINFER_INLINE void DecodeE4M3(const uint8_t* __restrict codes, const uint8_t* scales,
                                 int64_t count, float* __restrict out) {
  for (int64_t g = 0; g < count / kGroup; ++g) {
    const float scale = ScaleOf(scales[g]);
    for (int64_t i = 0; i < kGroup; ++i) {
      out[g * kGroup + i] = E4M3Value(codes[g * kGroup + i]) * scale;
    }
  }
}

// Packed e2m1 with one scale per `group` values, given as a function of the group's number.
template <int64_t group, typename ScaleFn>
DEEPINFER_INLINE void DecodeE2M1(const uint8_t* __restrict codes, int64_t count, ScaleFn scale_of,
                                 float* __restrict out) {
  for (int64_t g = 0; g < count / group; ++g) {
    const float scale = scale_of(g);
    for (int64_t i = 0; i < group / 2; ++i) {
      const uint32_t byte = codes[g * group / 2 + i];
      out[g * group + 2 * i] = E2M1Value(byte) * scale;
      out[g * group + 2 * i + 1] = E2M1Value(byte >> 4) * scale;
    }
  }
}

DEEPINFER_INLINE void DecodeBf16(const bf16* __restrict x, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = std::bit_cast<float>(static_cast<uint32_t>(x[i].bits) << 16);
  }
}

}  // namespace deepinfer::kernels::reference
