// Matrix products against double precision and against the documented sum order.
#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

// Both factors expanded to fp32, and the product by kernel: bf16 or, where `exact_out`, fp32.
struct Problem {
  int64_t rows, outputs, cols;
  std::vector<float> x, w;
  std::vector<double> got;
  bool fp32 = false;
};

void Check(const Problem& p) {
  for (int64_t m = 0; m < p.rows; ++m) {
    for (int64_t n = 0; n < p.outputs; ++n) {
      std::vector<float> terms(p.cols);
      double exact = 0, magnitude = 0;
      for (int64_t k = 0; k < p.cols; ++k) {
        const double term = static_cast<double>(p.x[m * p.cols + k]) * p.w[n * p.cols + k];
        terms[k] = static_cast<float>(term);
        ASSERT_EQ(terms[k], term) << "products of these formats are exact";
        exact += term;
        magnitude += std::fabs(term);
      }
      const double got = p.got[m * p.outputs + n], error = SumError(p.cols) * magnitude;
      const float restated = SumInLanes(terms);
      if (HasReferenceSumOrder()) {
        ASSERT_EQ(got, p.fp32 ? restated : RoundBf16(restated)) << m << ", " << n;
      }
      ASSERT_NEAR(got, exact, p.fp32 ? error : Bf16Tolerance(exact, error)) << m << ", " << n;
    }
  }
}

// Calls product(y, stride) on an output with two columns too many and checks that those stay.
template <typename T, typename Product>
void Multiply(Problem& p, Product product) {
  const int64_t stride = p.outputs + 2;
  std::vector<T> y(p.rows * stride);
  std::memset(static_cast<void*>(y.data()), 0x5a, y.size() * sizeof(T));
  const T untouched = y[0];
  product(y.data(), stride);
  for (int64_t m = 0; m < p.rows; ++m) {
    for (int64_t n = 0; n < stride; ++n) {
      const T v = y[m * stride + n];
      if (n >= p.outputs) {
        ASSERT_EQ(v, untouched) << "beyond the row's outputs";
      } else if constexpr (std::is_same_v<T, bf16>) {
        p.got.push_back(ToFloat(v));
      } else {
        p.got.push_back(v);
      }
    }
  }
  Check(p);
}

struct Shape {
  int64_t rows, outputs, cols;
};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.rows << " x " << s.cols << " -> " << s.outputs;
}

// Rows and outputs around the tiles of 4 and the block of 32.
class QuantisedGemm : public ::testing::TestWithParam<Shape> {
 protected:
  Q8Rows Rows() { return {codes_.data(), scales_.data(), shape_.rows, shape_.cols}; }
  std::vector<float> Expand(const std::vector<uint8_t>& codes, const std::vector<uint8_t>& scales,
                            int64_t cols, int64_t rows_a_scale) {
    std::vector<float> out(codes.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / cols, k = static_cast<int64_t>(i) % cols;
      out[i] =
          E4M3ToFloat(codes[i]) * E8M0ToFloat(scales[row / rows_a_scale * (cols / 32) + k / 32]);
    }
    return out;
  }

  Shape shape_ = GetParam();
  Random random_{static_cast<uint64_t>(shape_.rows * 1000 + shape_.outputs)};
  std::vector<uint8_t> codes_ = random_.E4M3Codes(shape_.rows * shape_.cols);
  std::vector<uint8_t> scales_ = random_.E8M0Scales(shape_.rows * shape_.cols / 32);
  std::vector<float> x_ = Expand(codes_, scales_, shape_.cols, 1);
  ThreadPool pool_{2};
};

TEST_P(QuantisedGemm, Fp8WeightsHaveOneScalePerTile) {
  const auto [rows, outputs, cols] = shape_;
  const std::vector<uint8_t> codes = random_.E4M3Codes(outputs * cols);
  const std::vector<uint8_t> scales = random_.E8M0Scales(CeilDiv(outputs, 32) * cols / 32);
  Problem p{rows, outputs, cols, x_, Expand(codes, scales, cols, 32), {}, false};
  Multiply<bf16>(p, [&](bf16* y, int64_t stride) {
    Kernels().Multiply(
        pool_,
        kernels::MakeGemm(Rows(), kernels::Fp8Matrix{codes.data(), scales.data(), outputs, cols}, y,
                          stride));
  });
}

TEST_P(QuantisedGemm, Fp4WeightsHaveOneScalePerRowAndGroup) {
  const auto [rows, outputs, cols] = shape_;
  const std::vector<uint8_t> codes = random_.Bytes(outputs * cols / 2);
  const std::vector<uint8_t> scales = random_.E8M0Scales(outputs * cols / 32);
  std::vector<float> w(outputs * cols);
  for (int64_t i = 0; i < outputs * cols; ++i) {
    w[i] = E2M1ToFloat(codes[i / 2] >> (i % 2 * 4) & 15) * E8M0ToFloat(scales[i / 32]);
  }
  Problem p{rows, outputs, cols, x_, w, {}, false};
  Multiply<bf16>(p, [&](bf16* y, int64_t stride) {
    Kernels().Multiply(
        pool_,
        kernels::MakeGemm(Rows(), kernels::Fp4Matrix{codes.data(), scales.data(), outputs, cols}, y,
                          stride));
  });
}

TEST_P(QuantisedGemm, Fp8WeightsWithUnquantisedRows) {
  const auto [rows, outputs, cols] = shape_;
  const int64_t stride = cols + 3;
  const std::vector<bf16> x = random_.Bf16s(rows * stride);
  const std::vector<uint8_t> codes = random_.E4M3Codes(outputs * cols);
  const std::vector<uint8_t> scales = random_.E8M0Scales(CeilDiv(outputs, 32) * cols / 32);
  Problem p{rows, outputs, cols, {}, Expand(codes, scales, cols, 32), {}, false};
  for (int64_t i = 0; i < rows * cols; ++i) p.x.push_back(ToFloat(x[i / cols * stride + i % cols]));
  Multiply<bf16>(p, [&](bf16* y, int64_t y_stride) {
    Kernels().Multiply(
        pool_, kernels::MakeGemm(kernels::RowsView{x.data(), rows, cols, stride},
                                 kernels::Fp8Matrix{codes.data(), scales.data(), outputs, cols}, y,
                                 y_stride));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, QuantisedGemm,
                         ::testing::Values(Shape{1, 1, 32}, Shape{2, 3, 64}, Shape{3, 4, 96},
                                           Shape{5, 33, 160}, Shape{31, 7, 32}, Shape{32, 66, 64},
                                           Shape{33, 5, 32}, Shape{64, 32, 32}, Shape{70, 13, 96}));

class Bf16Gemm : public ::testing::TestWithParam<Shape> {};

TEST_P(Bf16Gemm, BothOutputTypesAreTheExactProductToTheSumsError) {
  const auto [rows, outputs, cols] = GetParam();
  Random random(static_cast<uint64_t>(cols));
  ThreadPool pool(2);
  const int64_t stride = cols + 1;
  const std::vector<bf16> x = random.Bf16s(rows * stride), w = random.Bf16s(outputs * cols, 0.1);
  Problem p{rows, outputs, cols, {}, ToFloats(w), {}, false};
  for (int64_t i = 0; i < rows * cols; ++i) p.x.push_back(ToFloat(x[i / cols * stride + i % cols]));
  Problem wide = p;
  wide.fp32 = true;
  const RowsView view{x.data(), rows, cols, stride};
  Multiply<bf16>(p, [&](bf16* y, int64_t y_stride) {
    Kernels().Multiply(
        pool, kernels::MakeGemm(view, kernels::Bf16Matrix{w.data(), outputs, cols}, y, y_stride));
  });
  Multiply<float>(wide, [&](float* y, int64_t y_stride) {
    Kernels().Multiply(
        pool, kernels::MakeGemm(view, kernels::Bf16Matrix{w.data(), outputs, cols}, y, y_stride));
  });
}

// Widths that are no multiple of the 16 lanes as well.
INSTANTIATE_TEST_SUITE_P(Shapes, Bf16Gemm,
                         ::testing::Values(Shape{1, 1, 1}, Shape{2, 3, 15}, Shape{4, 5, 17},
                                           Shape{7, 9, 40}, Shape{33, 6, 64}, Shape{70, 31, 8}));

}  // namespace
}  // namespace deepinfer::kernels
