// Loops at the target's limits; contract in kernels/cpu/ceiling.h.
#include "kernels/cpu/ceiling.h"

#include "kernels/cpu/ops/dot.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

// Registers loaded before any is used: as many as hide the distance to memory.
constexpr int kLoadChains = 8;
static_assert(kLoadChains * sizeof(I32x16) == kReadStep);

// Vectors in flight: two units with a latency of four to six, within the registers there are.
#if defined(__AVX512BW__)
constexpr int kMultiplyChains = 24;
#elif defined(__AVX2__)
constexpr int kMultiplyChains = 6;
#else
constexpr int kMultiplyChains = 3;
#endif
// Multiply-adds of one chain in a round.
constexpr int kRoundSteps = 16;

uint32_t Read(const void* data, int64_t bytes) {
  const auto* p = static_cast<const int32_t*>(data);
  const int64_t values = bytes / static_cast<int64_t>(sizeof(int32_t));
  I32x16 seen[kLoadChains];
#pragma GCC unroll 8
  for (int c = 0; c < kLoadChains; ++c) seen[c] = I32Set1(0);
  for (int64_t i = 0; i < values; i += kLoadChains * kLanes) {
#pragma GCC unroll 8
    for (int c = 0; c < kLoadChains; ++c) seen[c] = Or(seen[c], Load(p + i + c * kLanes));
  }
#pragma GCC unroll 8
  for (int c = 1; c < kLoadChains; ++c) seen[0] = Or(seen[0], seen[c]);
  int32_t lanes[kLanes];
  Store(seen[0], lanes);
  uint32_t all = 0;
  for (int i = 0; i < kLanes; ++i) all |= static_cast<uint32_t>(lanes[i]);
  return all;
}

// The accumulator is a factor, so that an unfused product cannot leave the loop.
float MultiplyF32(int64_t rounds) {
  const F32x16 factor = Set1(0.999f), term = Set1(0.001f);
  F32x16 acc[kMultiplyChains];
#pragma GCC unroll 24
  for (int c = 0; c < kMultiplyChains; ++c) acc[c] = Set1(static_cast<float>(c));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int step = 0; step < kRoundSteps; ++step) {
#pragma GCC unroll 24
      for (int c = 0; c < kMultiplyChains; ++c) acc[c] = MulAdd(acc[c], factor, term);
    }
  }
#pragma GCC unroll 24
  for (int c = 1; c < kMultiplyChains; ++c) acc[0] = acc[0] + acc[c];
  return SumLanes(acc[0]);
}
constexpr double kF32Operations = 2.0 * kLanes * kMultiplyChains * kRoundSteps;

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
float MultiplyBf16(int64_t rounds) {
  const DotVec x = {_mm512_set1_epi16(0x3f80)}, w = {_mm512_set1_epi16(0x3580)};
  F32x16 acc[kMultiplyChains];
#pragma GCC unroll 24
  for (int c = 0; c < kMultiplyChains; ++c) acc[c] = Set1(static_cast<float>(c));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int step = 0; step < kRoundSteps; ++step) {
#pragma GCC unroll 24
      for (int c = 0; c < kMultiplyChains; ++c) acc[c] = DotAdd(acc[c], x, w);
    }
  }
#pragma GCC unroll 24
  for (int c = 1; c < kMultiplyChains; ++c) acc[0] = acc[0] + acc[c];
  return SumLanes(acc[0]);
}
// A lane of the dot product adds two products.
constexpr MultiplyUnit kUnits[] = {{"fp32_fma", kF32Operations, MultiplyF32},
                                   {"bf16_dot", 2 * kF32Operations, MultiplyBf16}};
#else
constexpr MultiplyUnit kUnits[] = {{"fp32_fma", kF32Operations, MultiplyF32}};
#endif

#define DEEPINFER_STRING(x) #x
#define DEEPINFER_NAME(x) DEEPINFER_STRING(x)
constexpr CeilingKernels kCeiling = {DEEPINFER_NAME(DEEPINFER_TARGET), Read, kUnits,
                                     static_cast<int>(sizeof(kUnits) / sizeof(kUnits[0]))};

}  // namespace

const CeilingKernels& Ceiling();
const CeilingKernels& Ceiling() { return kCeiling; }

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
