// Dot products of bf16 pairs (AVX512_BF16, with the byte permutations of AVX512_VBMI for the table
// look-ups). Contract: dot.h.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/ops/simd.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

using DotElement = bf16;

struct DotVec {
  __m512i v;
};
struct DotPair {
  DotVec a, b;
};

DEEPINFER_INLINE DotVec LoadDot(const DotElement* p) { return {_mm512_loadu_si512(p)}; }
DEEPINFER_INLINE void StoreDot(DotVec v, DotElement* p) { _mm512_storeu_si512(p, v.v); }
DEEPINFER_INLINE DotVec ZeroDot() { return {_mm512_setzero_si512()}; }
DEEPINFER_INLINE DotVec FromBf16(const bf16* p) { return {_mm512_loadu_si512(p)}; }
DEEPINFER_INLINE DotVec FromBf16First(const bf16* p, int64_t n) {
  const __mmask32 first = n >= 32 ? 0xffffffffu : (uint32_t{1} << n) - 1;
  return {_mm512_maskz_loadu_epi16(first, p)};
}

DEEPINFER_INLINE F32x16 DotAdd(F32x16 acc, DotVec x, DotVec w) {
  return {_mm512_dpbf16_ps(acc.v, (__m512bh)x.v, (__m512bh)w.v)};
}

// Adds to the exponents; zeros stay zeros. No value here is subnormal.
DEEPINFER_INLINE DotVec ScaleDot(DotVec v, uint8_t code) {
  const __m512i shift = _mm512_set1_epi16(static_cast<int16_t>((int{code} - 127) * 128));
  const __mmask32 nonzero = _mm512_test_epi16_mask(v.v, _mm512_set1_epi16(0x7fff));
  return {_mm512_mask_add_epi16(v.v, nonzero, v.v, shift)};
}

// The bf16 bits of the e4m3 magnitudes 0 to 127, low and high bytes apart.
struct Fp8Table {
  alignas(64) uint8_t low[128];
  alignas(64) uint8_t high[128];
};
constexpr Fp8Table MakeFp8Table() {
  Fp8Table table{};
  for (uint32_t c = 0; c < 128; ++c) {
    uint32_t exponent = c >> 3, mantissa = c & 7, bits = 0;
    if (exponent > 0) {
      bits = (exponent + 120) << 7 | mantissa << 4;
    } else if (mantissa > 0) {
      // mantissa * 2^-9, normalised.
      exponent = 121;
      while ((mantissa & 8) == 0) {
        mantissa <<= 1;
        --exponent;
      }
      bits = exponent << 7 | (mantissa & 7) << 4;
    }
    table.low[c] = static_cast<uint8_t>(bits & 255);
    table.high[c] = static_cast<uint8_t>(bits >> 8);
  }
  return table;
}
inline constexpr Fp8Table kFp8Table = MakeFp8Table();

// 64 codes with their 8-byte eighths in the order 0 4 1 5 2 6 3 7: the interleave of low and high
// bytes works inside 128-bit lanes, and so leaves elements in order.
DEEPINFER_INLINE DotPair ExpandFp8Eighths(__m512i codes) {
  const __m512i low = _mm512_permutex2var_epi8(_mm512_load_si512(kFp8Table.low), codes,
                                               _mm512_load_si512(kFp8Table.low + 64));
  const __m512i magnitude = _mm512_permutex2var_epi8(_mm512_load_si512(kFp8Table.high), codes,
                                                     _mm512_load_si512(kFp8Table.high + 64));
  // magnitude | (codes & 0x80)
  const __m512i high =
      _mm512_ternarylogic_epi64(magnitude, codes, _mm512_set1_epi8(int8_t{-128}), 0xf8);
  return {{_mm512_unpacklo_epi8(low, high)}, {_mm512_unpackhi_epi8(low, high)}};
}
DEEPINFER_INLINE DotPair ExpandFp8(const uint8_t* codes) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  return ExpandFp8Eighths(_mm512_permutexvar_epi64(order, _mm512_loadu_si512(codes)));
}
DEEPINFER_INLINE DotPair ExpandFp8Half(const uint8_t* codes) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  return ExpandFp8Eighths(
      _mm512_permutexvar_epi64(order, _mm512_maskz_loadu_epi64(__mmask8{15}, codes)));
}

// The bf16 bits of every e2m1 code times 2^(scale - 127). The 16 values stand twice, since the
// look-up takes five bits of its index and the code is in the lower four. Scales at the ends of the
// range, where bf16 ends too, saturate.
struct Fp4Table {
  alignas(64) uint16_t bits[256][32];
};
constexpr Fp4Table MakeFp4Table() {
  // Exponent over that of 1, and the mantissa's upper bit, of magnitude codes 1 to 7.
  constexpr int kExponent[8] = {0, -1, 0, 0, 1, 1, 2, 2};
  constexpr int kMantissa[8] = {0, 0, 0, 1, 0, 1, 0, 1};
  Fp4Table table{};
  for (int scale = 0; scale < 256; ++scale) {
    for (int i = 0; i < 32; ++i) {
      const int magnitude = i & 7;
      int exponent = scale + kExponent[magnitude];
      exponent = exponent < 1 ? 1 : exponent > 254 ? 254 : exponent;
      const int bits = magnitude == 0 ? 0 : exponent << 7 | kMantissa[magnitude] << 6;
      table.bits[scale][i] = static_cast<uint16_t>(bits | (i & 8) << 12);
    }
  }
  return table;
}
inline constexpr Fp4Table kFp4Table = MakeFp4Table();

// 16 bytes of codes, one scale.
DEEPINFER_INLINE DotVec ExpandFp4Codes(const uint8_t* codes, uint8_t scale) {
  const __m512i bytes =
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  // Low words keep the byte, whose low nibble counts; high words receive the byte shifted by four.
  const __m512i indices = _mm512_or_si512(bytes, _mm512_slli_epi32(bytes, 12));
  return {_mm512_permutexvar_epi16(indices, _mm512_load_si512(kFp4Table.bits[scale]))};
}

// The same with element 4 i + j at place 8 j + i: every 16-bit word of the codes holds four of
// them, lane j looks at the j-th. One shift replaces a widening, a shift and an or.
DEEPINFER_INLINE DotVec ExpandFp4Words(const uint8_t* codes, uint8_t scale) {
  const __m512i words =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  const __m512i shifts = _mm512_inserti64x4(
      _mm512_castsi256_si512(_mm256_set_m128i(_mm_set1_epi16(4), _mm_setzero_si128())),
      _mm256_set_m128i(_mm_set1_epi16(12), _mm_set1_epi16(8)), 1);
  const __m512i indices = _mm512_srlv_epi16(words, shifts);
  return {_mm512_permutexvar_epi16(indices, _mm512_load_si512(kFp4Table.bits[scale]))};
}
DEEPINFER_INLINE DotPair ExpandFp4Shuffled(const uint8_t* codes, uint8_t s0, uint8_t s1) {
  return {ExpandFp4Words(codes, s0), ExpandFp4Words(codes + 16, s1)};
}
DEEPINFER_INLINE DotPair ExpandFp4ShuffledHalf(const uint8_t* codes, uint8_t s0) {
  return {ExpandFp4Words(codes, s0), ZeroDot()};
}
DEEPINFER_INLINE DotVec ShuffleAsFp4(DotVec v) {
  // Place 8 j + i takes element 4 i + j. Two 16-bit indices a number.
  const __m512i order =
      _mm512_setr_epi32(0x00040000, 0x000c0008, 0x00140010, 0x001c0018, 0x00050001, 0x000d0009,
                        0x00150011, 0x001d0019, 0x00060002, 0x000e000a, 0x00160012, 0x001e001a,
                        0x00070003, 0x000f000b, 0x00170013, 0x001f001b);
  return {_mm512_permutexvar_epi16(order, v.v)};
}

// 24 accumulators, six rows and two registers of weights: what 32 registers hold.
inline constexpr int kTileRows = 6, kTileCols = 4;
inline constexpr int kGemvCols = 8, kGemvColsFew = 4;
// Expanding again for every four rows overlaps with their products; a panel would not.
inline constexpr int kFewRows = 16;

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
