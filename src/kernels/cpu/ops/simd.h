// Sixteen fp32 lanes with the same meaning on every target, whatever registers they take, so that
// a kernel written once gives the same bits on all of them.
//
// Per target (simd_128.h, simd_avx2.h, simd_avx512.h), by value, everything inlined:
//   F32x16 Zero(); Set1(float); Load(const float*); Store(F32x16, float*);
//   LoadFirst(const float*, n): the first n values (0 <= n <= 16), zeros behind; StoreFirst.
//   LoadBf16(const bf16*), LoadBf16First; StoreBf16, StoreBf16First: rounded to nearest even.
//   RoundBf16(F32x16): to the nearest bf16 value. NaN stays NaN.
//   + - * / between F32x16; MulAdd(a, b, c) = a * b + c, fused where the target can. Use it only
//     where the product is exact (formats of up to 8 significant bits, see docs/kernels.md): then
//     fused and unfused agree.
//   VMax(a, b), VMin(a, b): b where either is NaN or both are zeros; Abs.
//   Mask16 Less(a, b), LessEqual(a, b); Select(mask, if_true, if_false); Bits(mask): lane i in
//   bit i.
//   StoreSelected(mask, a, p): the lanes of the mask, one after the other; p has room for 16.
//   SumLanes(F32x16): tree order (i with i + 8, then + 4, + 2, + 1). MaxLanes.
//   I32x16: Load of int32, bit casts AsI32 / AsF32, + -, ShiftLeft<n>, ShiftRight<n> (arithmetic),
//   And, Or, I32Set1, Select. StoreBytes(I32x16, uint8_t*): the low byte of every lane.
//   StoreNibbles: lanes of 0 to 15 into eight bytes, even lanes in the low nibbles.
//   LoadE4m3(const uint8_t*): 16 codes, no scale. LoadE2m1(const uint8_t*): 8 bytes, 16 values in
//   element order (even element in the low nibble), no scale. No code is a NaN.
#pragma once

#include <cstdint>

#include "base/numeric.h"
#include "kernels/cpu/ops/target.h"

#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#include "kernels/cpu/ops/simd_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "kernels/cpu/ops/simd_avx2.h"
#else
#include "kernels/cpu/ops/simd_128.h"
#endif

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

inline constexpr int64_t kLanes = 16;

// As Exp of base/math.h, bit for bit.
DEEPINFER_INLINE F32x16 Exp(F32x16 x) {
  const F32x16 bounded = VMin(VMax(x, Set1(-104.0f)), Set1(89.0f));
  const F32x16 shifted = bounded * Set1(1.44269504088896341f) + Set1(12582912.0f);
  const F32x16 n = shifted - Set1(12582912.0f);
  const F32x16 r = (bounded - n * Set1(0.693359375f)) - n * Set1(-2.12194440e-4f);
  F32x16 p = Set1(1.9875691500e-4f);
  p = p * r + Set1(1.3981999507e-3f);
  p = p * r + Set1(8.3334519073e-3f);
  p = p * r + Set1(4.1665795894e-2f);
  p = p * r + Set1(1.6666665459e-1f);
  p = p * r + Set1(5.0000001201e-1f);
  const F32x16 y = (p * (r * r) + r) + Set1(1.0f);
  const I32x16 e = AsI32(shifted) - I32Set1(0x4b400000);
  // Towards zero, as integer division does.
  const I32x16 half = ShiftRight<1>(e - ShiftRight<31>(e));
  const F32x16 scale_a = AsF32(ShiftLeft<23>(half + I32Set1(127)));
  const F32x16 scale_b = AsF32(ShiftLeft<23>((e - half) + I32Set1(127)));
  const F32x16 result = y * scale_a * scale_b;
  const F32x16 flushed = Select(Less(x, Set1(-87.3f)), Zero(), result);
  return Select(LessEqual(x, x), flushed, x);
}

// 2^(code - 127) of an e8m0 byte.
DEEPINFER_INLINE float ScaleOf(uint8_t e8m0) {
  return __builtin_bit_cast(float, e8m0 == 0 ? 0x00400000u : static_cast<uint32_t>(e8m0) << 23);
}

DEEPINFER_INLINE float Bf16Value(bf16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}

// As ToBf16 of base/numeric.h.
DEEPINFER_INLINE bf16 NearestBf16(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
  return bf16{static_cast<uint16_t>(is_nan ? (u >> 16) | 0x40u : rounded)};
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
