// F32x16 in one AVX-512 register. Contract: simd.h.
#pragma once

#include <immintrin.h>

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

struct F32x16 {
  __m512 v;
};
struct I32x16 {
  __m512i v;
};
struct Mask16 {
  __mmask16 v;
};

DEEPINFER_INLINE F32x16 Zero() { return {_mm512_setzero_ps()}; }
DEEPINFER_INLINE F32x16 Set1(float x) { return {_mm512_set1_ps(x)}; }
DEEPINFER_INLINE F32x16 Load(const float* p) { return {_mm512_loadu_ps(p)}; }
DEEPINFER_INLINE void Store(F32x16 a, float* p) { _mm512_storeu_ps(p, a.v); }

DEEPINFER_INLINE __mmask16 FirstMask(int64_t n) {
  return static_cast<__mmask16>((uint32_t{1} << n) - 1);
}
DEEPINFER_INLINE F32x16 LoadFirst(const float* p, int64_t n) {
  return {_mm512_maskz_loadu_ps(FirstMask(n), p)};
}
DEEPINFER_INLINE void StoreFirst(F32x16 a, float* p, int64_t n) {
  _mm512_mask_storeu_ps(p, FirstMask(n), a.v);
}

DEEPINFER_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
DEEPINFER_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
DEEPINFER_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
DEEPINFER_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
DEEPINFER_INLINE F32x16 MulAdd(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
DEEPINFER_INLINE F32x16 VMax(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
DEEPINFER_INLINE F32x16 VMin(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }
DEEPINFER_INLINE F32x16 Abs(F32x16 a) { return {_mm512_abs_ps(a.v)}; }

DEEPINFER_INLINE Mask16 Less(F32x16 a, F32x16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
DEEPINFER_INLINE Mask16 LessEqual(F32x16 a, F32x16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)};
}
DEEPINFER_INLINE F32x16 Select(Mask16 m, F32x16 if_true, F32x16 if_false) {
  return {_mm512_mask_blend_ps(m.v, if_false.v, if_true.v)};
}
DEEPINFER_INLINE uint32_t Bits(Mask16 m) { return m.v; }

DEEPINFER_INLINE I32x16 I32Set1(int32_t x) { return {_mm512_set1_epi32(x)}; }
DEEPINFER_INLINE I32x16 Load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
DEEPINFER_INLINE void Store(I32x16 a, int32_t* p) { _mm512_storeu_si512(p, a.v); }
DEEPINFER_INLINE void StoreBytes(I32x16 a, uint8_t* p) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
DEEPINFER_INLINE void StoreNibbles(I32x16 a, uint8_t* p) {
  alignas(16) uint8_t bytes[16];
  StoreBytes(a, bytes);
  // Bytes in pairs: the first plus 16 times the second.
  const __m128i pairs = _mm_maddubs_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)),
                                          _mm_set1_epi16(0x1001));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(pairs, pairs));
}
DEEPINFER_INLINE I32x16 AsI32(F32x16 a) { return {_mm512_castps_si512(a.v)}; }
DEEPINFER_INLINE F32x16 AsF32(I32x16 a) { return {_mm512_castsi512_ps(a.v)}; }
DEEPINFER_INLINE I32x16 operator+(I32x16 a, I32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
DEEPINFER_INLINE I32x16 operator-(I32x16 a, I32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
DEEPINFER_INLINE I32x16 And(I32x16 a, I32x16 b) { return {_mm512_and_si512(a.v, b.v)}; }
DEEPINFER_INLINE I32x16 Or(I32x16 a, I32x16 b) { return {_mm512_or_si512(a.v, b.v)}; }
template <int n>
DEEPINFER_INLINE I32x16 ShiftLeft(I32x16 a) {
  return {_mm512_slli_epi32(a.v, n)};
}
template <int n>
DEEPINFER_INLINE I32x16 ShiftRight(I32x16 a) {
  return {_mm512_srai_epi32(a.v, n)};
}
DEEPINFER_INLINE I32x16 Select(Mask16 m, I32x16 if_true, I32x16 if_false) {
  return {_mm512_mask_blend_epi32(m.v, if_false.v, if_true.v)};
}

// The lanes of m, one after the other; may write all 16.
DEEPINFER_INLINE void StoreSelected(Mask16 m, F32x16 a, float* p) {
  _mm512_storeu_ps(p, _mm512_maskz_compress_ps(m.v, a.v));
}
DEEPINFER_INLINE void StoreSelected(Mask16 m, I32x16 a, int32_t* p) {
  _mm512_storeu_si512(p, _mm512_maskz_compress_epi32(m.v, a.v));
}

// Lane i with i + 8, then + 4, + 2, + 1.
DEEPINFER_INLINE float SumLanes(F32x16 a) {
  const __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
DEEPINFER_INLINE float MaxLanes(F32x16 a) {
  const __m256 b = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}

// The bf16 bits of every lane, in the low halves.
DEEPINFER_INLINE __m512i NearestBf16Bits(F32x16 a) {
  const __m512i u = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(rounded, nan, _mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
}
DEEPINFER_INLINE F32x16 RoundBf16(F32x16 a) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(NearestBf16Bits(a), 16))};
}
DEEPINFER_INLINE F32x16 ExpandBf16(__m256i bits) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
DEEPINFER_INLINE F32x16 LoadBf16(const bf16* p) {
  return ExpandBf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
DEEPINFER_INLINE F32x16 LoadBf16First(const bf16* p, int64_t n) {
  return ExpandBf16(_mm256_maskz_loadu_epi16(FirstMask(n), p));
}
DEEPINFER_INLINE void StoreBf16(F32x16 a, bf16* p) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(NearestBf16Bits(a)));
}
DEEPINFER_INLINE void StoreBf16First(F32x16 a, bf16* p, int64_t n) {
  _mm256_mask_storeu_epi16(p, FirstMask(n), _mm512_cvtepi32_epi16(NearestBf16Bits(a)));
}

// SumLanes of four vectors, in order.
DEEPINFER_INLINE __m128 FourSums(F32x16 a, F32x16 b, F32x16 c, F32x16 d) {
  // Eight lanes each of a and b, then four of each of the four.
  const __m512 ab =
      _mm512_add_ps(_mm512_shuffle_f32x4(a.v, b.v, 0x44), _mm512_shuffle_f32x4(a.v, b.v, 0xee));
  const __m512 cd =
      _mm512_add_ps(_mm512_shuffle_f32x4(c.v, d.v, 0x44), _mm512_shuffle_f32x4(c.v, d.v, 0xee));
  const __m512 four =
      _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  const __m512 two = _mm512_add_ps(four, _mm512_shuffle_ps(four, four, 0xee));
  const __m512 one = _mm512_add_ps(two, _mm512_movehdup_ps(two));
  // The sums are in lanes 0, 4, 8, 12.
  const __m512i pick = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  return _mm512_castps512_ps128(_mm512_permutexvar_ps(pick, one));
}
// out[i] = SumLanes of argument i.
DEEPINFER_INLINE void SumLanes4(F32x16 a, F32x16 b, F32x16 c, F32x16 d, float* out) {
  _mm_storeu_ps(out, FourSums(a, b, c, d));
}
DEEPINFER_INLINE void SumLanes4(F32x16 a, F32x16 b, F32x16 c, F32x16 d, bf16* out) {
  const __m512i bits = NearestBf16Bits({_mm512_castps128_ps512(FourSums(a, b, c, d))});
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out),
                   _mm256_castsi256_si128(_mm512_cvtepi32_epi16(bits)));
}

DEEPINFER_INLINE F32x16 LoadE4m3(const uint8_t* p) {
  const __m512i c = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512i magnitude = _mm512_slli_epi32(_mm512_and_si512(c, _mm512_set1_epi32(0x7f)), 20);
  const __m512i sign = _mm512_slli_epi32(_mm512_and_si512(c, _mm512_set1_epi32(0x80)), 24);
  return {_mm512_mul_ps(_mm512_castsi512_ps(_mm512_or_si512(magnitude, sign)),
                        _mm512_set1_ps(0x1p120f))};
}

DEEPINFER_INLINE F32x16 LoadE2m1(const uint8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  // Low and high nibbles alternate: bytes b0 b0 b1 b1 ..., odd ones shifted down.
  const __m512i c = _mm512_cvtepu8_epi32(_mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4)));
  const __m512 table = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f,
                                      -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
  // The permutation looks at the low four bits only.
  return {_mm512_permutexvar_ps(c, table)};
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
