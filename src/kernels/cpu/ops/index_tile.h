// Index keys of 64 entries expanded for dots with many query heads.
//
//   ExpandKeyTile(records, dim, buffer, rows): the keys at records[0..64) in `buffer` [kKeyTile *
//   (dim + kLanes)], as rows[0..KeyTileRows(dim)).
//   DotKeyTile(q, heads, dim, rows, dots): dots[h * kKeyTile + j] = q_h . key_j. fp32 targets sum
//   as dot.h says. bf16 targets lay keys across, one a lane, and add elements 2i and 2i + 1 with
//   one instruction, i ascending.
#pragma once

#include "kernels/cpu/ops/keys.h"
#include "kernels/cpu/ops/tiles.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// Entries a tile holds.
inline constexpr int64_t kKeyTile = 64;
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)

// rows[i] of a 16 x 16 matrix of 32-bit elements becomes its column i.
DEEPINFER_INLINE void Transpose16(__m512i* r) {
  __m512i a[16], b[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    a[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  // Columns 4 l + c of rows 4 i to 4 i + 3 in quarter l of b[4 i + c].
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    b[4 * i] = _mm512_unpacklo_epi64(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm512_unpackhi_epi64(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm512_unpacklo_epi64(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm512_unpackhi_epi64(a[4 * i + 1], a[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i even_low = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd);
    const __m512i even_high = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88);
    const __m512i odd_high = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);
    r[c] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    r[8 + c] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
    r[4 + c] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    r[12 + c] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
  }
}

// What the e8m0 scales at `offset` of 16 records (up to four a record) add to the exponents, each
// in both halves of its record's lane: shifts[g] of group g.
DEEPINFER_INLINE void ScaleShifts(const uint8_t* const* records, int64_t offset, int64_t groups,
                                  __m512i* shifts) {
  alignas(64) uint32_t scales[16];
  for (int j = 0; j < 16; ++j) {
    const uint8_t* p = records[j] + offset;
    scales[j] = 0;
    if (groups == 4) {
      __builtin_memcpy(scales + j, p, 4);
    } else {
      for (int64_t g = 0; g < groups; ++g) scales[j] |= static_cast<uint32_t>(p[g]) << (8 * g);
    }
  }
  __m512i rest = _mm512_load_si512(scales);
  for (int64_t g = 0; g < groups; ++g) {
    const __m512i scale = _mm512_and_si512(rest, _mm512_set1_epi32(0xff));
    const __m512i both = _mm512_or_si512(scale, _mm512_slli_epi32(scale, 16));
    shifts[g] = _mm512_slli_epi16(_mm512_sub_epi16(both, _mm512_set1_epi16(127)), 7);
    rest = _mm512_srli_epi32(rest, 8);
  }
}

// Elements [k, k + 8 words) of 16 records whose codes at k / 2 are given: four steps a word.
DEEPINFER_INLINE void ExpandAcross(const uint8_t* const* records, int64_t dim, int64_t k,
                                   int64_t words, DotElement* out) {
  __m512i codes[16], shifts[4];
  const auto mask = static_cast<__mmask16>((uint32_t{1} << words) - 1);
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) codes[j] = _mm512_maskz_loadu_epi32(mask, records[j] + k / 2);
  Transpose16(codes);
  ScaleShifts(records, dim / 2 + k / kGroup, words / 4, shifts);
  const __m512i table = _mm512_load_si512(kFp4Table.bits[127]);
  for (int64_t w = 0; w < words; ++w) {
    const __m512i shift = shifts[w / 4];
    __m512i bytes = codes[w];
    for (int64_t i = 0; i < 4; ++i) {
      // Low words look up the low nibble of the lowest byte, high words the other.
      const __m512i indices =
          _mm512_mask_blend_epi16(__mmask32{0xaaaaaaaa}, bytes, _mm512_slli_epi32(bytes, 12));
      const __m512i values = _mm512_permutexvar_epi16(indices, table);
      const __mmask32 nonzero = _mm512_test_epi16_mask(values, _mm512_set1_epi16(0x7fff));
      StoreDot({_mm512_mask_add_epi16(values, nonzero, values, shift)},
               out + (4 * w + i) * kKeyTile * kStepRows);
      bytes = _mm512_srli_epi32(bytes, 8);
    }
  }
}

DEEPINFER_INLINE void ExpandKeyTile(const uint8_t* const* records, int64_t dim, DotElement* buffer,
                                    const DotElement** rows) {
  for (int64_t k = 0; k < dim; k += 128) {
    const int64_t words = Min<int64_t>(128, dim - k) / 8;
    for (int64_t j = 0; j < kKeyTile; j += kLanes) {
      ExpandAcross(records + j, dim, k, words, buffer + (k / 2 * kKeyTile + j) * kStepRows);
    }
  }
  for (int64_t i = 0; i < dim / 2; ++i) rows[i] = buffer + i * kKeyTile * kStepRows;
}
DEEPINFER_INLINE int64_t KeyTileRows(int64_t dim) { return dim / kStepRows; }

DEEPINFER_INLINE void DotKeyTile(const DotElement* q, int64_t heads, int64_t dim,
                                 const DotElement* const* rows, float* dots) {
  AddWeighted(q, dim, heads, rows, dim / kStepRows, kKeyTile, nullptr, dots, kKeyTile);
}

#else

DEEPINFER_INLINE void ExpandKeyTile(const uint8_t* const* records, int64_t dim, DotElement* buffer,
                                    const DotElement** rows) {
  for (int64_t j = 0; j < kKeyTile; ++j) {
    rows[j] = buffer + j * (dim + kLanes);
    ExpandIndexKey(records[j], dim, buffer + j * (dim + kLanes));
  }
}
DEEPINFER_INLINE int64_t KeyTileRows(int64_t) { return kKeyTile; }

DEEPINFER_INLINE void DotKeyTile(const DotElement* q, int64_t heads, int64_t dim,
                                 const DotElement* const* rows, float* dots) {
  ForRowTiles(heads, [&](int64_t h, auto count) {
    for (int64_t j = 0; j < kKeyTile; j += kTileCols) {
      DotTile<decltype(count)::value>(q + h * dim, dim, rows + j, dim, 1.0f,
                                      dots + h * kKeyTile + j, kKeyTile);
    }
  });
}

#endif

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
