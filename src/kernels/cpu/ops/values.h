// Sums over rows weighted by scalars, acc[i] += w_n v_n[i]: probabilities times values, or query
// elements times keys that lie across. fp32 targets take one row a step, bf16 targets two, whose
// elements alternate in memory.
//
//   kStepRows: rows a step. LoadValues(p): kStepRows * 16 elements, 16 columns. LoadWeights(p): the
//   kStepRows weights at p, on every lane. AddValues(acc, w, v): acc plus the step's products; bf16
//   targets add both rows with one instruction.
//   ArrangeValues(rows, count, cols, buffer, stride, values): the rows as values[i], step i of
//   AddValues. What must be rearranged goes to buffer + i * stride. The partner that a last odd row
//   lacks has weight zero.
//   StoreWeights(x, p): sixteen fp32 lanes, rounded to bf16, as weights.
#pragma once

#include "kernels/cpu/ops/dot.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)

inline constexpr int64_t kStepRows = 2;

using WeightVec = DotVec;
using ValueVec = DotVec;

DEEPINFER_INLINE WeightVec LoadWeights(const DotElement* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return {_mm512_set1_epi32(pair)};
}
DEEPINFER_INLINE ValueVec LoadValues(const DotElement* p) { return LoadDot(p); }
DEEPINFER_INLINE F32x16 AddValues(F32x16 acc, WeightVec w, ValueVec v) { return DotAdd(acc, w, v); }
DEEPINFER_INLINE void StoreWeights(F32x16 x, DotElement* p) { StoreBf16(x, p); }

struct PairOrder {
  alignas(64) uint16_t first[32];
  alignas(64) uint16_t second[32];
};
constexpr PairOrder MakePairOrder() {
  PairOrder order{};
  for (int i = 0; i < 32; ++i) {
    order.first[i] = static_cast<uint16_t>(i / 2 + i % 2 * 32);
    order.second[i] = static_cast<uint16_t>(order.first[i] + 16);
  }
  return order;
}
inline constexpr PairOrder kPairOrder = MakePairOrder();

// out[2 i] = a[i], out[2 i + 1] = b[i] for `count` elements, a multiple of 32.
DEEPINFER_INLINE void Interleave(const DotElement* a, const DotElement* b, int64_t count,
                                 DotElement* out) {
  const __m512i first = _mm512_load_si512(kPairOrder.first);
  const __m512i second = _mm512_load_si512(kPairOrder.second);
  for (int64_t i = 0; i < count; i += 32) {
    const DotVec x = LoadDot(a + i), y = LoadDot(b + i);
    StoreDot({_mm512_permutex2var_epi16(x.v, first, y.v)}, out + 2 * i);
    StoreDot({_mm512_permutex2var_epi16(x.v, second, y.v)}, out + 2 * i + 32);
  }
}

DEEPINFER_INLINE void ArrangeValues(const DotElement* const* rows, int64_t count, int64_t cols,
                                    DotElement* buffer, int64_t stride, const DotElement** values) {
  for (int64_t i = 0; i < count; i += kStepRows) {
    DotElement* out = buffer + i / kStepRows * stride;
    Interleave(rows[i], rows[Min(i + 1, count - 1)], cols, out);
    values[i / kStepRows] = out;
  }
}

#else

inline constexpr int64_t kStepRows = 1;

using WeightVec = F32x16;
using ValueVec = F32x16;

DEEPINFER_INLINE WeightVec LoadWeights(const DotElement* p) { return Set1(*p); }
DEEPINFER_INLINE ValueVec LoadValues(const DotElement* p) { return Load(p); }
DEEPINFER_INLINE F32x16 AddValues(F32x16 acc, WeightVec w, ValueVec v) { return MulAdd(w, v, acc); }
DEEPINFER_INLINE void StoreWeights(F32x16 x, DotElement* p) { Store(RoundBf16(x), p); }

DEEPINFER_INLINE void ArrangeValues(const DotElement* const* rows, int64_t count, int64_t,
                                    DotElement*, int64_t, const DotElement** values) {
  for (int64_t i = 0; i < count; ++i) values[i] = rows[i];
}

#endif

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
