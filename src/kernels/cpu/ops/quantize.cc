// Quantisers Q8, Q4u and Q4e and the packed cache records (spec model-v41 sections 2.0, 4), with
// the bits of base/numeric.h. Inputs are finite.
#include "kernels/cpu/ops/quantize.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/q8.h"
#include "kernels/cpu/ops/shares.h"
#include "kernels/cpu/ops/simd.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

constexpr float kMinAbsQ4u = 6 * 0x1p-126f;
constexpr float kMinAbsQ4e = 6 * 0x1p-9f;
// Operations a group of 16 elements takes.
constexpr int64_t kGroupOperations = 24;

// Rounds positive floats to `bits` mantissa bits, ties to even, as integers of their pattern.
template <int bits>
DEEPINFER_INLINE I32x16 RoundMantissa(I32x16 u) {
  constexpr int kDropped = 23 - bits;
  const I32x16 odd = And(ShiftRight<kDropped>(u), I32Set1(1));
  return u + I32Set1((1 << (kDropped - 1)) - 1) + odd;
}

// e2m1 codes, saturated.
DEEPINFER_INLINE I32x16 E2m1Codes(F32x16 x) {
  const F32x16 a = VMin(Abs(x), Set1(6.0f));
  const I32x16 normal = ShiftRight<22>(RoundMantissa<1>(AsI32(a))) - I32Set1(126 << 1);
  // Adding 2^22 leaves the spacing of the codes below 1, a half.
  const I32x16 subnormal = And(AsI32(a + Set1(0x1p22f)), I32Set1(3));
  const I32x16 sign = And(ShiftRight<28>(AsI32(x)), I32Set1(8));
  return Or(Select(Less(a, Set1(1.0f)), subnormal, normal), sign);
}

// The values those codes stand for.
DEEPINFER_INLINE F32x16 RoundE2m1(F32x16 x) {
  const F32x16 a = VMin(Abs(x), Set1(6.0f));
  const F32x16 normal = AsF32(And(RoundMantissa<1>(AsI32(a)), I32Set1(-1 << 22)));
  const F32x16 subnormal = (a + Set1(0x1p22f)) - Set1(0x1p22f);
  const I32x16 sign = And(AsI32(x), I32Set1(INT32_MIN));
  return AsF32(Or(AsI32(Select(Less(a, Set1(1.0f)), subnormal, normal)), sign));
}

// The e8m0 byte of a Q4u group: the smallest power of two >= max|x| / 6.
DEEPINFER_INLINE uint8_t GroupScale(F32x16 lo, F32x16 hi) {
  const float max = Max(kMinAbsQ4u, MaxLanes(VMax(Abs(lo), Abs(hi))));
  const auto u = __builtin_bit_cast(uint32_t, max * (1.0f / 6.0f));
  return static_cast<uint8_t>((u >> 23) + ((u & 0x7fffffu) != 0));
}

// 2^(127 - code): times it is divided by the scale. Scales of finite groups are 1 to 253.
DEEPINFER_INLINE F32x16 InverseScale(uint8_t code) {
  return Set1(__builtin_bit_cast(float, (254u - code) << 23));
}

DEEPINFER_INLINE void QuantizeQ8Row(const bf16* x, int64_t cols, uint8_t* codes, uint8_t* scales) {
  for (int64_t g = 0; g < cols / kGroup; ++g) {
    const bf16* group = x + g * kGroup;
    QuantizeQ8Group(LoadBf16(group), LoadBf16(group + 16), codes + g * kGroup, scales + g);
  }
}

DEEPINFER_INLINE void PackQ4uRow(const bf16* x, int64_t dim, uint8_t* codes, uint8_t* scales) {
  for (int64_t g = 0; g < dim / kGroup; ++g) {
    const F32x16 lo = LoadBf16(x + g * kGroup), hi = LoadBf16(x + g * kGroup + 16);
    scales[g] = GroupScale(lo, hi);
    const F32x16 inverse = InverseScale(scales[g]);
    StoreNibbles(E2m1Codes(lo * inverse), codes + g * kGroup / 2);
    StoreNibbles(E2m1Codes(hi * inverse), codes + g * kGroup / 2 + 8);
  }
}

DEEPINFER_INLINE void RoundQ4uRow(bf16* x, int64_t cols) {
  for (bf16* p = x; p < x + cols; p += kGroup) {
    const F32x16 lo = LoadBf16(p), hi = LoadBf16(p + 16);
    const uint8_t code = GroupScale(lo, hi);
    const F32x16 inverse = InverseScale(code), scale = Set1(ScaleOf(code));
    StoreBf16(RoundE2m1(lo * inverse) * scale, p);
    StoreBf16(RoundE2m1(hi * inverse) * scale, p + 16);
  }
}

// Sixteen groups of 16 at a time, so that their scales are rounded together.
DEEPINFER_INLINE void PackQ4eRow(const bf16* x, int64_t dim, uint8_t* codes, uint8_t* scales) {
  const int64_t groups = dim / kKvGroup;
  for (int64_t first = 0; first < groups; first += kLanes) {
    const int64_t count = Min(kLanes, groups - first);
    float max[kLanes], scale[kLanes];
    uint8_t scale_codes[kLanes];
    for (int64_t g = 0; g < kLanes; ++g) {
      max[g] = kMinAbsQ4e;
      if (g < count) max[g] = Max(max[g], MaxLanes(Abs(LoadBf16(x + (first + g) * kKvGroup))));
    }
    StoreBytes(E4m3Codes(Load(max) / Set1(6.0f)), scale_codes);
    Store(LoadE4m3(scale_codes), scale);
    for (int64_t g = 0; g < count; ++g) {
      scales[first + g] = scale_codes[g];
      const F32x16 values = LoadBf16(x + (first + g) * kKvGroup) / Set1(scale[g]);
      StoreNibbles(E2m1Codes(values), codes + (first + g) * kKvGroup / 2);
    }
  }
}

template <typename Row>
DEEPINFER_INLINE void ForRows(ThreadPool& pool, int64_t rows, int64_t cols, const Row& row) {
  pool.ParallelFor(rows, Grain(cols / kLanes * kGroupOperations),
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t r = begin; r < end; ++r) row(r);
                   });
}

}  // namespace

void QuantizeQ8(ThreadPool& pool, const RowsView& x, const Q8Rows& out) {
  ForRows(pool, x.rows, x.cols, [&](int64_t r) {
    QuantizeQ8Row(x.values + r * x.stride, x.cols, out.codes + r * x.cols,
                  out.scales + r * (x.cols / kGroup));
  });
}

void RoundQ4u(ThreadPool& pool, bf16* x, int64_t rows, int64_t cols) {
  ForRows(pool, rows, cols, [&](int64_t r) { RoundQ4uRow(x + r * cols, cols); });
}

void PackWindow(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out) {
  ForRows(pool, rows, dim,
          [&](int64_t r) { QuantizeQ8Row(x + r * dim, dim, out[r], out[r] + dim); });
}

void PackKv(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out) {
  ForRows(pool, rows, dim,
          [&](int64_t r) { PackQ4eRow(x + r * dim, dim, out[r], out[r] + dim / 2); });
}

void PackIndexKey(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out) {
  ForRows(pool, rows, dim,
          [&](int64_t r) { PackQ4uRow(x + r * dim, dim, out[r], out[r] + dim / 2); });
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
