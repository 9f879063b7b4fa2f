// Quantised products and whole experts against the release's.
#include "tests/golden/units/units_testing.h"

namespace deepinfer::golden {
namespace {

using kernels::Fp4Matrix;
using kernels::Fp8Matrix;
using kernels::Q8Rows;

class GemmUnits : public ::testing::Test {
 protected:
  // The rows of x through Q8, then through NAME (fp4 when its codes are packed).
  std::vector<bf16> Linear(const std::vector<bf16>& x, int64_t cols, const std::string& name,
                           const std::string& scale_name) {
    const int64_t rows = static_cast<int64_t>(x.size()) / cols;
    std::vector<uint8_t> codes(x.size()), scales(x.size() / 32);
    const Q8Rows q8{codes.data(), scales.data(), rows, cols};
    Kernels().quantize_q8(pool_, {x.data(), rows, cols, cols}, q8);
    const std::vector<uint8_t> w = UnitBytes(name), w_scales = UnitBytes(scale_name);
    const bool packed = Units().View(name).dtype == DType::kI8;
    const int64_t outputs = Units().View(name).shape[0];
    std::vector<bf16> y(rows * outputs);
    if (packed) {
      Kernels().Multiply(
          pool_, kernels::MakeGemm(q8, kernels::Fp4Matrix{w.data(), w_scales.data(), outputs, cols},
                                   y.data(), outputs));
    } else {
      Kernels().Multiply(
          pool_, kernels::MakeGemm(q8, kernels::Fp8Matrix{w.data(), w_scales.data(), outputs, cols},
                                   y.data(), outputs));
    }
    return y;
  }

  std::vector<bf16> Expert(const std::string& name, const float* route_weight) {
    const std::vector<bf16> x = UnitBf16(name + ".x");
    const std::vector<bf16> a = Linear(x, 64, name + ".w1", name + ".w1_scale");
    const std::vector<bf16> b = Linear(x, 64, name + ".w3", name + ".w3_scale");
    std::vector<bf16> u(a.size());
    std::vector<uint8_t> codes(u.size()), scales(u.size() / 32);
    Kernels().swiglu_q8(pool_, {.rows = 6,
                                .cols = 96,
                                .a = a.data(),
                                .b = b.data(),
                                .weight = route_weight,
                                .limit = 10.0f,
                                .out = {codes.data(), scales.data(), 6, 96},
                                .u = u.data()});
    return Linear(u, 96, name + ".w2", name + ".w2_scale");
  }

  ThreadPool pool_{2};
};

TEST_F(GemmUnits, Fp8ProductIsTheReleases) {
  ExpectBf16(Linear(UnitBf16("gemm.x"), 160, "gemm.w8", "gemm.w8_scale"), "gemm.y8");
}

TEST_F(GemmUnits, Fp4ProductIsTheReleases) {
  ExpectBf16(Linear(UnitBf16("gemm.x"), 160, "gemm.w4", "gemm.w4_scale"), "gemm.y4");
}

TEST_F(GemmUnits, UnquantisedInputsGiveTheExactProductRounded) {
  const std::vector<bf16> x = UnitBf16("gemm.x");
  const std::vector<uint8_t> codes = UnitBytes("gemm.w8"), scales = UnitBytes("gemm.w8_scale");
  std::vector<bf16> y(7 * 96);
  Kernels().Multiply(
      pool_,
      kernels::MakeGemm(kernels::RowsView{x.data(), 7, 160, 160},
                        kernels::Fp8Matrix{codes.data(), scales.data(), 96, 160}, y.data(), 96));
  for (int64_t m = 0; m < 7; ++m) {
    for (int64_t n = 0; n < 96; ++n) {
      double exact = 0, magnitude = 0;
      for (int64_t k = 0; k < 160; ++k) {
        const double term = static_cast<double>(ToFloat(x[m * 160 + k])) *
                            E4M3ToFloat(codes[n * 160 + k]) *
                            E8M0ToFloat(scales[n / 32 * 5 + k / 32]);
        exact += term;
        magnitude += std::fabs(term);
      }
      // Half a bf16 step, and 14 fp32 additions on the longest path of the sum.
      const double fp32_error = 14 * 0x1p-24 * magnitude;
      const double half_step = std::ldexp(1.0, std::ilogb(std::fabs(exact) + fp32_error) - 8);
      ASSERT_NEAR(ToFloat(y[m * 96 + n]), exact, half_step + fp32_error) << m << ", " << n;
    }
  }
}

TEST_F(GemmUnits, RoutedExpertIsTheReleases) {
  const std::vector<float> weight = UnitF32("expert.fp4.route_weight");
  ExpectBf16(Expert("expert.fp4", nullptr), "expert.fp4.y");
  ExpectBf16(Expert("expert.fp4", weight.data()), "expert.fp4.y_weighted");
}

TEST_F(GemmUnits, SharedExpertIsTheReleases) {
  const std::vector<float> weight = UnitF32("expert.fp8.route_weight");
  ExpectBf16(Expert("expert.fp8", nullptr), "expert.fp8.y");
  ExpectBf16(Expert("expert.fp8", weight.data()), "expert.fp8.y_weighted");
}

}  // namespace
}  // namespace deepinfer::golden
