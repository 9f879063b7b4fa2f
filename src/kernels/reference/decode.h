// Expansion of stored codes to fp32.
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

// Both values of a packed e2m1 byte, low nibble first. A table, since interleaving the nibbles
// keeps compilers from vectorising the arithmetic.
struct E2M1Pairs {
  float values[256][2];
};
constexpr E2M1Pairs MakeE2M1Pairs() {
  constexpr float kMagnitude[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  E2M1Pairs table{};
  for (int byte = 0; byte < 256; ++byte) {
    for (int i = 0; i < 2; ++i) {
      const int code = byte >> (4 * i) & 15;
      table.values[byte][i] = (code & 8) ? -kMagnitude[code & 7] : kMagnitude[code & 7];
    }
  }
  return table;
}
inline constexpr E2M1Pairs kE2M1Pairs = MakeE2M1Pairs();

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
    float* values = out + g * group;
    for (int64_t i = 0; i < group / 2; ++i) {
      std::memcpy(values + 2 * i, kE2M1Pairs.values[codes[g * group / 2 + i]], 2 * sizeof(float));
    }
    const float scale = scale_of(g);
    for (int64_t i = 0; i < group; ++i) values[i] *= scale;
  }
}

DEEPINFER_INLINE void DecodeBf16(const bf16* __restrict x, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = std::bit_cast<float>(static_cast<uint32_t>(x[i].bits) << 16);
  }
}

}  // namespace deepinfer::kernels::reference
