// Scalar number formats of the checkpoint, bit exact. Rounding is to nearest, ties to even.
// Sources: OCP 8-bit and MX formats; spec model-v41 section 2.0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace deepinfer {

// A bfloat16 value: the upper half of an fp32.
struct bf16 {
  uint16_t bits = 0;
  friend bool operator==(bf16 a, bf16 b) = default;
};

inline float ToFloat(bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

// NaN stays NaN (quiet); values beyond the largest bf16 become infinity.
inline bf16 ToBf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
  const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
  return bf16{static_cast<uint16_t>(is_nan ? ((u >> 16) | 0x40u) : (rounded >> 16))};
}

inline float RoundBf16(float x) { return ToFloat(ToBf16(x)); }

// e8m0: byte c means 2^(c-127); 255 is NaN.
inline float E8M0ToFloat(uint8_t c) {
  // c = 0 is 2^-127, an fp32 subnormal.
  return std::bit_cast<float>(c == 255 ? 0x7fc00000u : c == 0 ? 0x00400000u : uint32_t{c} << 23);
}

// e4m3fn: no infinity; 0x7f and 0xff are NaN.
inline float E4M3ToFloat(uint8_t c) {
  if ((c & 0x7f) == 0x7f) return std::bit_cast<float>(0x7fc00000u);
  // Put exponent and mantissa where fp32 has them, then move the bias from 7 to 127.
  const float magnitude = std::bit_cast<float>(uint32_t(c & 0x7f) << 20) * 0x1p120f;
  return (c & 0x80) ? -magnitude : magnitude;
}

// Saturates at +-448; NaN gives 0x7f.
inline uint8_t FloatToE4M3(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint8_t sign = static_cast<uint8_t>((u >> 24) & 0x80u);
  const float a = std::bit_cast<float>(u & 0x7fffffffu);
  if (a != a) return 0x7f;
  if (a >= 448.0f) return sign | 0x7e;
  if (a < 0x1p-6f) {
    // Subnormal: multiples of 2^-9. Adding 2^14 leaves exactly that spacing in fp32 and rounds to
    // even; the low mantissa bits are then the code (8 is the smallest normal).
    const float shifted = a + 0x1p14f;
    return sign | static_cast<uint8_t>(std::bit_cast<uint32_t>(shifted) & 0xfu);
  }
  uint32_t v = std::bit_cast<uint32_t>(a);
  v += 0x7ffffu + ((v >> 20) & 1u);
  return sign | static_cast<uint8_t>((v >> 20) - (120u << 3));
}

// e2m1: magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6 by the low three bits; bit 3 is the sign.
inline float E2M1ToFloat(uint8_t c) {
  constexpr float kMagnitude[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  return (c & 8) ? -kMagnitude[c & 7] : kMagnitude[c & 7];
}

// Saturates at +-6; ties go to the even code; the sign of zero is kept.
inline uint8_t FloatToE2M1(float x) {
  const float a = std::fabs(x);
  const uint8_t sign = std::signbit(x) ? 8 : 0;
  const int code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) +
                   (a >= 3.5f) + (a > 5.0f);
  return sign | static_cast<uint8_t>(code);
}

// The e8m0 byte of the smallest power of two >= t, for a positive finite t that is at least
// 2^-126: exponent(t) + (mantissa(t) != 0).
inline uint8_t CeilPowerOfTwoE8M0(float t) {
  const uint32_t u = std::bit_cast<uint32_t>(t);
  return static_cast<uint8_t>((u >> 23) + ((u & 0x7fffffu) != 0));
}

}  // namespace deepinfer
