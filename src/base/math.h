// Transcendental functions whose bits do not depend on the C library or the instruction set: only
// IEEE products, sums and integer operations, so loops over them vectorise and still agree.
#pragma once

#include <bit>
#include <cstdint>

namespace deepinfer {

// e^x within 1 ulp for x in [-87.3, 88.7]. Below -87.3 it returns 0 (the results would be
// subnormal); where e^x exceeds the largest float, infinity. NaN gives NaN.
inline float Exp(float x) {
  // Cody-Waite: x = n ln2 + r, |r| <= ln2/2, with ln2 in two parts.
  const float bounded = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
  const float shifted = bounded * 1.44269504088896341f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (bounded - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float y = (p * (r * r) + r) + 1.0f;
  const int32_t e = static_cast<int32_t>(std::bit_cast<uint32_t>(shifted)) - 0x4b400000;
  // Two factors, since 2^e itself can leave the range of normal numbers.
  const int32_t half = e / 2;
  const float scale_a = std::bit_cast<float>(static_cast<uint32_t>(half + 127) << 23);
  const float scale_b = std::bit_cast<float>(static_cast<uint32_t>(e - half + 127) << 23);
  const float result = y * scale_a * scale_b;
  return x < -87.3f ? 0.0f : x != x ? x : result;
}

inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

}  // namespace deepinfer
