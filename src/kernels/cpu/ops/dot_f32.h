// Dot products on fp32 lanes. Contract: dot.h. Every product is exact (two factors of at most eight
// significant bits), so fused and unfused targets agree.
#pragma once

#include "kernels/cpu/ops/simd.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

using DotElement = float;

struct DotVec {
  F32x16 lo, hi;
};
struct DotPair {
  DotVec a, b;
};

DEEPINFER_INLINE DotVec LoadDot(const DotElement* p) { return {Load(p), Load(p + 16)}; }
DEEPINFER_INLINE void StoreDot(DotVec v, DotElement* p) {
  Store(v.lo, p);
  Store(v.hi, p + 16);
}
DEEPINFER_INLINE DotVec ZeroDot() { return {Zero(), Zero()}; }
DEEPINFER_INLINE DotVec FromBf16(const bf16* p) { return {LoadBf16(p), LoadBf16(p + 16)}; }
DEEPINFER_INLINE DotVec FromBf16First(const bf16* p, int64_t n) {
  return {LoadBf16First(p, Min<int64_t>(n, 16)), LoadBf16First(p + 16, Max<int64_t>(n - 16, 0))};
}

DEEPINFER_INLINE F32x16 DotAdd(F32x16 acc, DotVec x, DotVec w) {
  return MulAdd(x.hi, w.hi, MulAdd(x.lo, w.lo, acc));
}

DEEPINFER_INLINE DotVec ScaleDot(DotVec v, uint8_t code) {
  const F32x16 scale = Set1(ScaleOf(code));
  return {v.lo * scale, v.hi * scale};
}

DEEPINFER_INLINE DotVec ExpandFp8Codes(const uint8_t* codes) {
  return {LoadE4m3(codes), LoadE4m3(codes + 16)};
}
DEEPINFER_INLINE DotPair ExpandFp8(const uint8_t* codes) {
  return {ExpandFp8Codes(codes), ExpandFp8Codes(codes + 32)};
}
DEEPINFER_INLINE DotPair ExpandFp8Half(const uint8_t* codes) {
  return {ExpandFp8Codes(codes), ZeroDot()};
}

DEEPINFER_INLINE DotVec ExpandFp4Codes(const uint8_t* codes, uint8_t scale) {
  return ScaleDot({LoadE2m1(codes), LoadE2m1(codes + 8)}, scale);
}
DEEPINFER_INLINE DotPair ExpandFp4Shuffled(const uint8_t* codes, uint8_t s0, uint8_t s1) {
  return {ExpandFp4Codes(codes, s0), ExpandFp4Codes(codes + 16, s1)};
}
DEEPINFER_INLINE DotPair ExpandFp4ShuffledHalf(const uint8_t* codes, uint8_t s0) {
  return {ExpandFp4Codes(codes, s0), ZeroDot()};
}
DEEPINFER_INLINE DotVec ShuffleAsFp4(DotVec v) { return v; }

#if defined(__AVX512BW__)
// 24 accumulators, six rows and two registers of weights: what 32 registers hold.
inline constexpr int kTileRows = 6, kTileCols = 4;
inline constexpr int kGemvCols = 8, kGemvColsFew = 4;
#elif defined(__AVX2__)
inline constexpr int kTileRows = 3, kTileCols = 2;
inline constexpr int kGemvCols = 4, kGemvColsFew = 1;
#else
inline constexpr int kTileRows = 2, kTileCols = 2;
inline constexpr int kGemvCols = 2, kGemvColsFew = 1;
#endif
inline constexpr int kFewRows = 4;

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
