// Q8 of values in registers (spec model-v41 section 2.0).
#pragma once

#include "kernels/cpu/ops/simd.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// As FloatToE4M3 of base/numeric.h.
DEEPINFER_INLINE I32x16 E4m3Codes(F32x16 x) {
  const I32x16 sign = And(ShiftRight<24>(AsI32(x)), I32Set1(0x80));
  const F32x16 a = Abs(x);
  const I32x16 subnormal = And(AsI32(a + Set1(0x1p14f)), I32Set1(0xf));
  const I32x16 bounded = AsI32(VMin(a, Set1(448.0f)));
  const I32x16 odd = And(ShiftRight<20>(bounded), I32Set1(1));
  const I32x16 normal = ShiftRight<20>((bounded + I32Set1(0x7ffff)) + odd) - I32Set1(120 << 3);
  const I32x16 code = Or(sign, Select(Less(a, Set1(0x1p-6f)), subnormal, normal));
  return Select(LessEqual(x, x), code, I32Set1(0x7f));
}

// The codes and the e8m0 scale of a group of 32 bf16 values.
DEEPINFER_INLINE void QuantizeQ8Group(F32x16 lo, F32x16 hi, uint8_t* codes, uint8_t* scale) {
  // NaN does not count towards the maximum.
  const float max = MaxLanes(VMax(Abs(hi), VMax(Abs(lo), Set1(1e-4f))));
  // The smallest power of two >= max / 448.
  const uint32_t bits = __builtin_bit_cast(uint32_t, max * (1.0f / 448.0f));
  const uint32_t code = (bits >> 23) + ((bits & 0x7fffffu) != 0 ? 1 : 0);
  *scale = static_cast<uint8_t>(code);
  // 2^(127 - code); NaN for the NaN scale of an infinite maximum.
  const F32x16 inverse =
      Set1(__builtin_bit_cast(float, code == 255 ? 0x7fc00000u : (254 - code) << 23));
  StoreBytes(E4m3Codes(lo * inverse), codes);
  StoreBytes(E4m3Codes(hi * inverse), codes + 16);
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
