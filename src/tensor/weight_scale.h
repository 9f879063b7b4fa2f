// The scales that a matrix of FP8 or FP4 weights may have.
#pragma once

#include <cstdint>

namespace deepinfer {

// e8m0 codes, hence 2^-63 to 2^63. Kernels fold scales into the exponents of bf16 and fp32 values;
// within this range a product of codes, this scale and that of an input neither overflows nor
// becomes subnormal. Engram tables are no matrices and may have any scale but NaN.
inline constexpr uint8_t kMinWeightScale = 127 - 63;
inline constexpr uint8_t kMaxWeightScale = 127 + 63;

}  // namespace deepinfer
