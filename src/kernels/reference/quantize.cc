// Quantisers of the model: Q8, Q4u, Q4e and the packed cache records. Source: spec section 2.0, 4.
#include <algorithm>
#include <cmath>

#include "kernels/reference/kernels.h"
#include "kernels/reference/lanes.h"

namespace deepinfer::kernels::reference {
namespace {

constexpr float kMinAbsQ8 = 1e-4f;
constexpr float kMinAbsQ4u = 6 * 0x1p-126f;
constexpr float kMinAbsQ4e = 6 * 0x1p-9f;

DEEPINFER_INLINE float MaxAbs(const bf16* x, int64_t count, float floor) {
  float a = floor;
  for (int64_t i = 0; i < count; ++i) a = std::max(a, std::fabs(ToFloat(x[i])));
  return a;
}

// The e8m0 byte of one group: smallest power of two >= max|x| / format maximum. The quotient is a
// product with the fp32 reciprocal, as trained.
DEEPINFER_INLINE uint8_t GroupScale(const bf16* x, float floor, float reciprocal) {
  return CeilPowerOfTwoE8M0(MaxAbs(x, kGroup, floor) * reciprocal);
}

DEEPINFER_INLINE uint8_t E2M1Of(float x, float scale) {
  return FloatToE2M1(std::min(std::max(x / scale, -6.0f), 6.0f));
}

void QuantizeQ8Row(const bf16* x, int64_t cols, uint8_t* codes, uint8_t* scales) {
  for (int64_t g = 0; g < cols / kGroup; ++g) {
    const bf16* group = x + g * kGroup;
    scales[g] = GroupScale(group, kMinAbsQ8, 1.0f / 448.0f);
    // Powers of two: the product with the reciprocal is the quotient.
    const float inverse = 1.0f / E8M0ToFloat(scales[g]);
    for (int64_t i = 0; i < kGroup; ++i) {
      codes[g * kGroup + i] = FloatToE4M3(ToFloat(group[i]) * inverse);
    }
  }
}

void PackQ4uRow(const bf16* x, int64_t dim, uint8_t* codes, uint8_t* scales) {
  for (int64_t g = 0; g < dim / kGroup; ++g) {
    const bf16* group = x + g * kGroup;
    scales[g] = GroupScale(group, kMinAbsQ4u, 1.0f / 6.0f);
    const float scale = E8M0ToFloat(scales[g]);
    for (int64_t i = 0; i < kGroup; i += 2) {
      codes[(g * kGroup + i) / 2] = static_cast<uint8_t>(E2M1Of(ToFloat(group[i]), scale) |
                                                         E2M1Of(ToFloat(group[i + 1]), scale) << 4);
    }
  }
}

void PackQ4eRow(const bf16* x, int64_t dim, uint8_t* codes, uint8_t* scales) {
  for (int64_t g = 0; g < dim / kKvGroup; ++g) {
    const bf16* group = x + g * kKvGroup;
    scales[g] = FloatToE4M3(MaxAbs(group, kKvGroup, kMinAbsQ4e) / 6.0f);
    const float scale = E4M3ToFloat(scales[g]);
    for (int64_t i = 0; i < kKvGroup; i += 2) {
      codes[(g * kKvGroup + i) / 2] = static_cast<uint8_t>(
          E2M1Of(ToFloat(group[i]), scale) | E2M1Of(ToFloat(group[i + 1]), scale) << 4);
    }
  }
}

}  // namespace

void QuantizeQ8(ThreadPool& pool, const RowsView& x, const Q8Rows& out) {
  pool.ParallelFor(x.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      QuantizeQ8Row(x.values + r * x.stride, x.cols, out.codes + r * x.cols,
                    out.scales + r * (x.cols / kGroup));
    }
  });
}

void RoundQ4u(ThreadPool& pool, bf16* x, int64_t rows, int64_t cols) {
  pool.ParallelFor(rows, 8, [&](int64_t begin, int64_t end, int) {
    for (bf16* group = x + begin * cols; group < x + end * cols; group += kGroup) {
      const float scale = E8M0ToFloat(GroupScale(group, kMinAbsQ4u, 1.0f / 6.0f));
      for (int64_t i = 0; i < kGroup; ++i) {
        group[i] = ToBf16(E2M1ToFloat(E2M1Of(ToFloat(group[i]), scale)) * scale);
      }
    }
  });
}

void PackWindow(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out) {
  pool.ParallelFor(rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) QuantizeQ8Row(x + r * dim, dim, out[r], out[r] + dim);
  });
}

void PackKv(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out) {
  pool.ParallelFor(rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) PackQ4eRow(x + r * dim, dim, out[r], out[r] + dim / 2);
  });
}

void PackIndexKey(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out) {
  pool.ParallelFor(rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) PackQ4uRow(x + r * dim, dim, out[r], out[r] + dim / 2);
  });
}

}  // namespace deepinfer::kernels::reference
