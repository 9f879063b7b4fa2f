// Row kernels of the table under test give the bits of the reference: lengths that are no multiple
// of the lanes, one row and many, extreme values.
#include <limits>
#include <numeric>

#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

const KernelTable& Reference() { return reference::Table(); }

// bf16 values of which one in eight is zero, tiny, huge or infinite.
std::vector<bf16> ExtremeBf16s(Random& random, int64_t count) {
  constexpr float kExtremes[] = {0.0f,
                                 -0.0f,
                                 1e-39f,
                                 -1e-30f,
                                 3e38f,
                                 -3e38f,
                                 1e18f,
                                 -1e18f,
                                 1.0f,
                                 -1.0f,
                                 std::numeric_limits<float>::infinity()};
  std::vector<bf16> out = random.Bf16s(count, 3);
  for (bf16& v : out) {
    if (random.Below(0, 8) == 0) v = ToBf16(kExtremes[random.Below(0, std::size(kExtremes))]);
  }
  return out;
}

// The same numbers with one pattern for every NaN, whose bits no contract fixes.
std::vector<bf16> Canonical(std::vector<bf16> x) {
  for (bf16& v : x) {
    if (std::isnan(ToFloat(v))) v.bits = 0x7fc0;
  }
  return x;
}

class RowBits : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t rows_ = GetParam();
  Random random_{static_cast<uint64_t>(rows_)};
  ThreadPool pool_{2};
};

TEST_P(RowBits, SwiGluQ8IsActivationThenQuantisation) {
  for (const int64_t cols : {32, 96, 1056}) {
    const auto a = ExtremeBf16s(random_, rows_ * cols), b = ExtremeBf16s(random_, rows_ * cols);
    const std::vector<float> weight = random_.Floats(rows_);
    for (const float* w : {static_cast<const float*>(nullptr), weight.data()}) {
      std::vector<bf16> want(rows_ * cols), u(rows_ * cols);
      std::vector<uint8_t> want_codes(rows_ * cols), want_scales(rows_ * cols / 32);
      Reference().swiglu(pool_, a.data(), b.data(), w, rows_, cols, 10.0f, want.data());
      Reference().quantize_q8(pool_, {want.data(), rows_, cols, cols},
                              {want_codes.data(), want_scales.data(), rows_, cols});
      for (bf16* out : {u.data(), static_cast<bf16*>(nullptr)}) {
        std::vector<uint8_t> codes(rows_ * cols), scales(rows_ * cols / 32);
        Kernels().swiglu_q8(pool_, {.rows = rows_,
                                    .cols = cols,
                                    .a = a.data(),
                                    .b = b.data(),
                                    .weight = w,
                                    .limit = 10.0f,
                                    .out = {codes.data(), scales.data(), rows_, cols},
                                    .u = out});
        ASSERT_EQ(scales, want_scales) << cols;
        ASSERT_EQ(codes, want_codes) << cols;
      }
      ASSERT_EQ(BitsOf(Canonical(u)), BitsOf(Canonical(want))) << cols;
    }
  }
}

TEST_P(RowBits, CombineIsScatterInOrderThenTheSharedRow) {
  constexpr int64_t kTopk = 6, kSlots = 40;
  for (const int64_t hidden : {1, 15, 16, 100, 520, 1030}) {
    const std::vector<bf16> y = random_.Bf16s(kSlots * hidden, 3);
    std::vector<bf16> shared = random_.Bf16s(rows_ * hidden, 3), want(rows_ * hidden);
    std::vector<int32_t> slots(rows_ * kTopk);
    for (int32_t& slot : slots) slot = static_cast<int32_t>(random_.Below(0, kSlots));
    std::vector<float> acc(rows_ * hidden);
    for (int64_t k = 0; k < kTopk; ++k) {
      std::vector<int32_t> targets(rows_);
      std::iota(targets.begin(), targets.end(), 0);
      std::vector<bf16> picked;
      for (int64_t r = 0; r < rows_; ++r) {
        const auto first = y.begin() + slots[r * kTopk + k] * hidden;
        picked.insert(picked.end(), first, first + hidden);
      }
      Reference().scatter_add(pool_, picked.data(), targets.data(), rows_, hidden, acc.data());
    }
    Reference().add_round(pool_, acc.data(), shared.data(), rows_ * hidden, want.data());
    // In place: the sum replaces the shared rows.
    Kernels().combine(pool_, {.rows = rows_,
                              .topk = kTopk,
                              .hidden = hidden,
                              .y = y.data(),
                              .slots = slots.data(),
                              .shared = shared.data(),
                              .out = shared.data()});
    ASSERT_EQ(BitsOf(shared), BitsOf(want)) << hidden;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, RowBits, ::testing::Values(1, 2, 3, 17, 70));

}  // namespace
}  // namespace deepinfer::kernels
