// Quantisers against a search over all codes in double precision.
#include <limits>

#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

// The code whose value is nearest to v; a tie goes to the even code. `value` decodes magnitudes.
template <typename Decode>
int NearestCode(double v, int codes, Decode value) {
  int best = 0;
  for (int c = 1; c < codes; ++c) {
    const double d = std::fabs(value(c) - std::fabs(v)), b = std::fabs(value(best) - std::fabs(v));
    if (d < b || (d == b && c % 2 == 0)) best = c;
  }
  return best;
}

uint8_t E4M3Code(double v) {
  const int c = NearestCode(v, 0x7f, [](int i) { return E4M3ToFloat(static_cast<uint8_t>(i)); });
  return static_cast<uint8_t>(c | (std::signbit(v) ? 0x80 : 0));
}
uint8_t E2M1Code(double v) {
  const int c = NearestCode(v, 8, [](int i) { return E2M1ToFloat(static_cast<uint8_t>(i)); });
  return static_cast<uint8_t>(c | (std::signbit(v) ? 8 : 0));
}

float MaxAbs(const bf16* x, int64_t count, double floor) {
  float a = static_cast<float>(floor);
  for (int64_t i = 0; i < count; ++i) a = std::max(a, std::fabs(ToFloat(x[i])));
  return a;
}

// Smallest k with 2^k >= t.
int CeilLog2(float t) {
  int k = -127;
  while (std::ldexp(1.0, k) < t) ++k;
  return k;
}

// Rows of all magnitudes, with zeros and values halfway between codes.
std::vector<bf16> MixedRows(Random& random, int64_t rows, int64_t cols) {
  std::vector<bf16> x(rows * cols);
  for (int64_t r = 0; r < rows; ++r) {
    const double scale = std::ldexp(1.0, static_cast<int>(random.Below(-30, 30)));
    for (int64_t i = 0; i < cols; ++i) {
      const double v = random.Below(0, 4) == 0 ? static_cast<double>(random.Below(-16, 17)) / 4
                                               : random.Normal();
      x[r * cols + i] = ToBf16(static_cast<float>(v * scale));
    }
  }
  return x;
}

TEST(QuantizeQ8, CodesAreNearestUnderTheSmallestSufficientPowerOfTwo) {
  Random random(1);
  ThreadPool pool(1);
  constexpr int64_t kRows = 40, kCols = 96, kStride = 101;
  const std::vector<bf16> x = MixedRows(random, kRows, kStride);
  std::vector<uint8_t> codes(kRows * kCols), scales(kRows * kCols / 32);
  Kernels().quantize_q8(pool, {x.data(), kRows, kCols, kStride},
                        {codes.data(), scales.data(), kRows, kCols});
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < kCols; ++i) {
      const bf16* group = x.data() + r * kStride + i / 32 * 32;
      const int k = CeilLog2(MaxAbs(group, 32, 1e-4) * (1.0f / 448.0f));
      ASSERT_EQ(scales[(r * kCols + i) / 32], k + 127) << r << ", " << i;
      ASSERT_EQ(codes[r * kCols + i], E4M3Code(ToFloat(group[i % 32]) / std::ldexp(1.0, k)));
    }
  }
}

TEST(PackWindow, RecordsAreTheQ8CodesThenTheirScales) {
  Random random(2);
  ThreadPool pool(1);
  const std::vector<bf16> x = MixedRows(random, 5, 64);
  std::vector<uint8_t> codes(5 * 64), scales(5 * 2), records(5 * 66);
  Kernels().quantize_q8(pool, {x.data(), 5, 64, 64}, {codes.data(), scales.data(), 5, 64});
  // Any order of records in memory.
  uint8_t* out[5];
  for (int r = 0; r < 5; ++r) out[r] = records.data() + (4 - r) * 66;
  Kernels().pack_window(pool, x.data(), 5, 64, out);
  for (int r = 0; r < 5; ++r) {
    EXPECT_EQ(std::memcmp(out[r], codes.data() + r * 64, 64), 0);
    EXPECT_EQ(std::memcmp(out[r] + 64, scales.data() + r * 2, 2), 0);
  }
}

TEST(PackIndexKey, CodesAreNearestAndTheInPlaceFormHasTheirValues) {
  Random random(3);
  ThreadPool pool(1);
  constexpr int64_t kRows = 40, kDim = 64, kBytes = kDim / 2 + kDim / 32;
  std::vector<bf16> x = MixedRows(random, kRows, kDim);
  std::vector<uint8_t> records(kRows * kBytes);
  std::vector<uint8_t*> out;
  for (int64_t r = 0; r < kRows; ++r) out.push_back(records.data() + r * kBytes);
  Kernels().pack_index_key(pool, x.data(), kRows, kDim, out.data());
  std::vector<bf16> rounded = x;
  Kernels().round_q4u(pool, rounded.data(), kRows, kDim);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < kDim; ++i) {
      const float t = MaxAbs(x.data() + r * kDim + i / 32 * 32, 32, 6 * 0x1p-126) * (1.0f / 6.0f);
      const int k = CeilLog2(t);
      const uint8_t code = out[r][i / 2] >> (i % 2 * 4) & 15;
      ASSERT_EQ(out[r][kDim / 2 + i / 32], k + 127);
      ASSERT_EQ(code, E2M1Code(ToFloat(x[r * kDim + i]) / std::ldexp(1.0, k))) << r << ", " << i;
      ASSERT_EQ(ToFloat(rounded[r * kDim + i]), E2M1ToFloat(code) * std::ldexp(1.0, k));
    }
  }
}

TEST(PackKv, CodesAreNearestUnderTheRoundedScale) {
  Random random(4);
  ThreadPool pool(1);
  constexpr int64_t kRows = 40, kDim = 64, kBytes = kDim / 2 + kDim / 16;
  const std::vector<bf16> x = MixedRows(random, kRows, kDim);
  std::vector<uint8_t> records(kRows * kBytes);
  std::vector<uint8_t*> out;
  for (int64_t r = 0; r < kRows; ++r) out.push_back(records.data() + r * kBytes);
  Kernels().pack_kv(pool, x.data(), kRows, kDim, out.data());
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < kDim; ++i) {
      const float a = MaxAbs(x.data() + r * kDim + i / 16 * 16, 16, 6 * 0x1p-9);
      const uint8_t scale = out[r][kDim / 2 + i / 16];
      ASSERT_EQ(scale, E4M3Code(a / 6.0f)) << r << ", " << i;
      const float quotient = ToFloat(x[r * kDim + i]) / E4M3ToFloat(scale);
      ASSERT_EQ(out[r][i / 2] >> (i % 2 * 4) & 15, E2M1Code(quotient)) << r << ", " << i;
    }
  }
}

TEST(Quantizers, LargestAndSmallestInputsStayDefined) {
  ThreadPool pool(1);
  const bf16 largest{0x7f7f}, smallest{0x0001};
  for (const bf16 value : {largest, smallest, bf16{0}, bf16{0x8000}}) {
    std::vector<bf16> x(32, value);
    std::vector<uint8_t> codes(32), scales(1), record(32);
    uint8_t* out = record.data();
    Kernels().quantize_q8(pool, {x.data(), 1, 32, 32}, {codes.data(), scales.data(), 1, 32});
    EXPECT_NE(codes[0] & 0x7f, 0x7f);
    EXPECT_NE(scales[0], 255);
    Kernels().pack_kv(pool, x.data(), 1, 32, &out);
    EXPECT_NE(record[16] & 0x7f, 0x7f);
    Kernels().pack_index_key(pool, x.data(), 1, 32, &out);
    EXPECT_NE(record[16], 255);
  }
}

}  // namespace
}  // namespace deepinfer::kernels
