// Cache records expanded to rows of DotElement, exact in every format. Formats: kernel_table.h.
#pragma once

#include "kernels/cpu/ops/dot.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// Entry numbers have 31 bits, whose division costs half of what that of int64_t does.
DEEPINFER_INLINE const uint8_t* RecordOf(const EntryBlocks& entries, int64_t j) {
  const auto size = static_cast<uint32_t>(entries.entries_per_block);
  const uint32_t block = static_cast<uint32_t>(j) / size;
  const uint32_t record = static_cast<uint32_t>(j) - block * size;
  return entries.blocks[block] + (entries.offset + int64_t{record} * entries.entry_bytes);
}
DEEPINFER_INLINE const uint8_t* RecordOf(const WindowView& window, int64_t position) {
  return position < window.chunk_start
             ? window.ring + position % window.ring_slots * window.entry_bytes
             : window.chunk + (position - window.chunk_start) * window.entry_bytes;
}

// The entry that a column of query i's scores stands for.
DEEPINFER_INLINE int32_t EntryOfColumn(const BlockLists& lists, int64_t i, int64_t column) {
  if (lists.blocks == nullptr) return static_cast<int32_t>(column);
  const int64_t block = lists.blocks[i * lists.stride + column / lists.size];
  return static_cast<int32_t>(block * lists.size + column % lists.size);
}

DEEPINFER_INLINE void PrefetchRecord(const uint8_t* record, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(record + i);
}

// `dim` is a multiple of 32 in all of them.
DEEPINFER_INLINE void ExpandWindowRecord(const uint8_t* record, int64_t dim, DotElement* out) {
  const uint8_t* scales = record + dim;
  int64_t k = 0;
  for (; k + 64 <= dim; k += 64) {
    const DotPair pair = ExpandFp8(record + k);
    StoreDot(ScaleDot(pair.a, scales[k / kGroup]), out + k);
    StoreDot(ScaleDot(pair.b, scales[k / kGroup + 1]), out + k + 32);
  }
  if (k < dim) StoreDot(ScaleDot(ExpandFp8Half(record + k).a, scales[k / kGroup]), out + k);
}

DEEPINFER_INLINE void ExpandIndexKey(const uint8_t* record, int64_t dim, DotElement* out) {
  const uint8_t* scales = record + dim / 2;
  for (int64_t k = 0; k < dim; k += 32) {
    StoreDot(ExpandFp4Codes(record + k / 2, scales[k / kGroup]), out + k);
  }
}

// Value of an e4m3 code.
constexpr float E4m3Value(uint32_t code) {
  return __builtin_bit_cast(float, (code & 0x7fu) << 20 | (code & 0x80u) << 24) * 0x1p120f;
}

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)

// The bf16 bits of every e2m1 code times every e4m3 scale.
struct KvTable {
  alignas(64) uint16_t bits[256][16];
};
constexpr KvTable MakeKvTable() {
  constexpr float kMagnitude[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  KvTable table{};
  for (uint32_t scale = 0; scale < 256; ++scale) {
    for (int code = 0; code < 16; ++code) {
      const float value =
          (code & 8 ? -kMagnitude[code & 7] : kMagnitude[code & 7]) * E4m3Value(scale);
      // At most six significant bits: the lower half of the fp32 pattern is zero.
      table.bits[scale][code] = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, value) >> 16);
    }
  }
  return table;
}
inline constexpr KvTable kKvTable = MakeKvTable();

DEEPINFER_INLINE void ExpandKvRecord(const uint8_t* record, int64_t dim, DotElement* out) {
  const uint8_t* scales = record + dim / 2;
  // Indices: the nibble, and above it which of the two groups' scales counts.
  const __m512i nibbles = _mm512_set1_epi32(0x000f000f);
  const __m512i groups = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(16), 1);
  for (int64_t k = 0; k < dim; k += 32) {
    const auto* codes = reinterpret_cast<const __m128i*>(record + k / 2);
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(codes));
    const __m512i spread = _mm512_or_si512(bytes, _mm512_slli_epi32(bytes, 12));
    const __m512i indices = _mm512_ternarylogic_epi32(spread, nibbles, groups, 0xea);
    const auto* low = reinterpret_cast<const __m256i*>(kKvTable.bits[scales[k / kKvGroup]]);
    const auto* high = reinterpret_cast<const __m256i*>(kKvTable.bits[scales[k / kKvGroup + 1]]);
    const __m512i values = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_load_si256(low)),
                                              _mm256_load_si256(high), 1);
    StoreDot({_mm512_permutexvar_epi16(indices, values)}, out + k);
  }
}

#else

DEEPINFER_INLINE void ExpandKvRecord(const uint8_t* record, int64_t dim, DotElement* out) {
  const uint8_t* scales = record + dim / 2;
  for (int64_t k = 0; k < dim; k += kKvGroup) {
    Store(LoadE2m1(record + k / 2) * Set1(E4m3Value(scales[k / kKvGroup])), out + k);
  }
}

#endif

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
