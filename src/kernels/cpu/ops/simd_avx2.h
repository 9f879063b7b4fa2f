// F32x16 in two AVX2 registers: lanes 0 to 7 and 8 to 15. Contract: simd.h.
#pragma once

#include <immintrin.h>

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};
struct Mask16 {
  __m256 lo, hi;
};

DEEPINFER_INLINE F32x16 Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
DEEPINFER_INLINE F32x16 Set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
DEEPINFER_INLINE F32x16 Load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
DEEPINFER_INLINE void Store(F32x16 a, float* p) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}

// All ones in the first n of eight lanes; n may lie outside 0 to 8.
DEEPINFER_INLINE __m256i FirstMask(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
DEEPINFER_INLINE F32x16 LoadFirst(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, FirstMask(n)), _mm256_maskload_ps(p + 8, FirstMask(n - 8))};
}
DEEPINFER_INLINE void StoreFirst(F32x16 a, float* p, int64_t n) {
  _mm256_maskstore_ps(p, FirstMask(n), a.lo);
  _mm256_maskstore_ps(p + 8, FirstMask(n - 8), a.hi);
}

DEEPINFER_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
DEEPINFER_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
DEEPINFER_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
DEEPINFER_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
DEEPINFER_INLINE F32x16 MulAdd(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
DEEPINFER_INLINE F32x16 VMax(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
DEEPINFER_INLINE F32x16 VMin(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
DEEPINFER_INLINE F32x16 Abs(F32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}

DEEPINFER_INLINE Mask16 Less(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
DEEPINFER_INLINE Mask16 LessEqual(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LE_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LE_OQ)};
}
DEEPINFER_INLINE F32x16 Select(Mask16 m, F32x16 if_true, F32x16 if_false) {
  return {_mm256_blendv_ps(if_false.lo, if_true.lo, m.lo),
          _mm256_blendv_ps(if_false.hi, if_true.hi, m.hi)};
}
DEEPINFER_INLINE uint32_t Bits(Mask16 m) {
  return static_cast<uint32_t>(_mm256_movemask_ps(m.lo)) |
         static_cast<uint32_t>(_mm256_movemask_ps(m.hi)) << 8;
}

DEEPINFER_INLINE I32x16 I32Set1(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
DEEPINFER_INLINE I32x16 Load(const int32_t* p) {
  const auto* q = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
DEEPINFER_INLINE void Store(I32x16 a, int32_t* p) {
  auto* q = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(q, a.lo);
  _mm256_storeu_si256(q + 1, a.hi);
}
DEEPINFER_INLINE void StoreBytes(I32x16 a, uint8_t* p) {
  const __m256i low = _mm256_set1_epi32(0xff);
  // Words of lo and hi in 128-bit halves lo, hi, lo, hi; back in order, then bytes.
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packus_epi32(_mm256_and_si256(a.lo, low), _mm256_and_si256(a.hi, low)), 0xd8);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}
DEEPINFER_INLINE void StoreNibbles(I32x16 a, uint8_t* p) {
  alignas(16) uint8_t bytes[16];
  StoreBytes(a, bytes);
  // Bytes in pairs: the first plus 16 times the second.
  const __m128i pairs = _mm_maddubs_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)),
                                          _mm_set1_epi16(0x1001));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(pairs, pairs));
}
DEEPINFER_INLINE I32x16 AsI32(F32x16 a) {
  return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}
DEEPINFER_INLINE F32x16 AsF32(I32x16 a) {
  return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
}
DEEPINFER_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
DEEPINFER_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
DEEPINFER_INLINE I32x16 And(I32x16 a, I32x16 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
DEEPINFER_INLINE I32x16 Or(I32x16 a, I32x16 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
template <int n>
DEEPINFER_INLINE I32x16 ShiftLeft(I32x16 a) {
  return {_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)};
}
template <int n>
DEEPINFER_INLINE I32x16 ShiftRight(I32x16 a) {
  return {_mm256_srai_epi32(a.lo, n), _mm256_srai_epi32(a.hi, n)};
}
DEEPINFER_INLINE I32x16 Select(Mask16 m, I32x16 if_true, I32x16 if_false) {
  return AsI32(Select(m, AsF32(if_true), AsF32(if_false)));
}

// The lanes of m, one after the other.
DEEPINFER_INLINE void StoreSelected(Mask16 m, F32x16 a, float* p) {
  float t[16];
  Store(a, t);
  for (uint32_t bits = Bits(m); bits != 0; bits &= bits - 1) *p++ = t[__builtin_ctz(bits)];
}
DEEPINFER_INLINE void StoreSelected(Mask16 m, I32x16 a, int32_t* p) {
  int32_t t[16];
  Store(a, t);
  for (uint32_t bits = Bits(m); bits != 0; bits &= bits - 1) *p++ = t[__builtin_ctz(bits)];
}

// Lane i with i + 8, then + 4, + 2, + 1.
DEEPINFER_INLINE float SumLanes(F32x16 a) {
  const __m256 b = _mm256_add_ps(a.lo, a.hi);
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
DEEPINFER_INLINE float MaxLanes(F32x16 a) {
  const __m256 b = _mm256_max_ps(a.lo, a.hi);
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}

// The bf16 bits of eight lanes, in the low halves.
DEEPINFER_INLINE __m256i NearestBf16Bits(__m256 a) {
  const __m256i u = _mm256_castps_si256(a);
  const __m256i high = _mm256_srli_epi32(u, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256 nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
  return _mm256_castps_si256(
      _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan));
}
DEEPINFER_INLINE F32x16 RoundBf16(F32x16 a) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(NearestBf16Bits(a.lo), 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(NearestBf16Bits(a.hi), 16))};
}
DEEPINFER_INLINE __m256 ExpandBf16(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
DEEPINFER_INLINE F32x16 LoadBf16(const bf16* p) {
  const auto* q = reinterpret_cast<const __m128i*>(p);
  return {ExpandBf16(_mm_loadu_si128(q)), ExpandBf16(_mm_loadu_si128(q + 1))};
}
DEEPINFER_INLINE void StoreBf16(F32x16 a, bf16* p) {
  const __m256i packed = _mm256_packus_epi32(NearestBf16Bits(a.lo), NearestBf16Bits(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
DEEPINFER_INLINE F32x16 LoadBf16First(const bf16* p, int64_t n) {
  alignas(32) bf16 t[16];
  for (int64_t i = 0; i < 16; ++i) t[i].bits = i < n ? p[i].bits : uint16_t{0};
  return LoadBf16(t);
}
DEEPINFER_INLINE void StoreBf16First(F32x16 a, bf16* p, int64_t n) {
  alignas(32) bf16 t[16];
  StoreBf16(a, t);
  for (int64_t i = 0; i < n; ++i) p[i].bits = t[i].bits;
}

DEEPINFER_INLINE __m256 E4m3Lanes(__m128i codes) {
  const __m256i c = _mm256_cvtepu8_epi32(codes);
  const __m256i magnitude = _mm256_slli_epi32(_mm256_and_si256(c, _mm256_set1_epi32(0x7f)), 20);
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(c, _mm256_set1_epi32(0x80)), 24);
  return _mm256_mul_ps(_mm256_castsi256_ps(_mm256_or_si256(magnitude, sign)),
                       _mm256_set1_ps(0x1p120f));
}
DEEPINFER_INLINE F32x16 LoadE4m3(const uint8_t* p) {
  const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {E4m3Lanes(c), E4m3Lanes(_mm_srli_si128(c, 8))};
}

// Twice the value of e2m1 codes as bytes, then to fp32 and halved: every step is exact. A zero with
// sign becomes plain zero, which no sum can tell.
DEEPINFER_INLINE __m256 E2m1Lanes(__m128i codes) {
  const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
  const __m256i twice = _mm256_cvtepi8_epi32(_mm_shuffle_epi8(table, codes));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(twice), _mm256_set1_ps(0.5f));
}
DEEPINFER_INLINE F32x16 LoadE2m1(const uint8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  const __m128i c =
      _mm_and_si128(_mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4)), _mm_set1_epi8(15));
  return {E2m1Lanes(c), E2m1Lanes(_mm_srli_si128(c, 8))};
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
