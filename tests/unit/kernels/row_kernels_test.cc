// Norms, rotation and hyper-connections against double precision.
#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

TEST(RmsNorm, RowsOfAnyLengthAreNormalised) {
  Random random(1);
  ThreadPool pool(2);
  for (const int64_t cols : {1, 5, 16, 31, 100}) {
    const int64_t rows = 7, stride = cols + 3;
    const std::vector<bf16> x = random.Bf16s(rows * stride, 0.2), w = random.Bf16s(cols);
    std::vector<bf16> y(rows * cols);
    Kernels().rms_norm(pool, {x.data(), rows, cols, stride}, w.data(), 1e-6f, y.data());
    for (int64_t i = 0; i < rows * cols; ++i) {
      const bf16* row = x.data() + i / cols * stride;
      double squares = 0;
      for (int64_t k = 0; k < cols; ++k) squares += std::pow(ToFloat(row[k]), 2);
      const double norm = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-6);
      const double exact = ToFloat(w[i % cols]) * (ToFloat(row[i % cols]) * norm);
      // The root halves the sum's error; six more roundings.
      const double error = (SumError(cols) + 6 * 0x1p-24) * std::fabs(exact);
      ASSERT_NEAR(ToFloat(y[i]), exact, Bf16Tolerance(exact, error)) << cols << ": " << i;
    }
  }
}

TEST(RmsNorm, TheResultMayReplaceTheInput) {
  Random random(2);
  ThreadPool pool(1);
  std::vector<bf16> x = random.Bf16s(3 * 40), y(x.size());
  const std::vector<bf16> w = random.Bf16s(40);
  Kernels().rms_norm(pool, {x.data(), 3, 40, 40}, w.data(), 1e-20f, y.data());
  Kernels().rms_norm(pool, {x.data(), 3, 40, 40}, w.data(), 1e-20f, x.data());
  EXPECT_EQ(x, y);
}

TEST(Rope, OnlyTheLastValuesOfEachHeadTurnAndTheInverseTurnsBack) {
  Random random(3);
  ThreadPool pool(2);
  constexpr int64_t kRows = 5, kHeads = 3, kDim = 20, kRope = 6;
  const std::vector<bf16> before = random.Bf16s(kRows * kHeads * kDim);
  std::vector<float> cos, sin;
  for (int64_t i = 0; i < kRows * kRope / 2; ++i) {
    const double angle = 6 * random.Uniform();
    cos.push_back(static_cast<float>(std::cos(angle)));
    sin.push_back(static_cast<float>(std::sin(angle)));
  }
  for (const bool inverse : {false, true}) {
    std::vector<bf16> x = before;
    Kernels().rope(pool, x.data(), kRows, kHeads, kDim, kRope, cos.data(), sin.data(), inverse);
    for (int64_t i = 0; i < kRows * kHeads * kDim; i += 2) {
      const int64_t d = i % kDim - (kDim - kRope);
      if (d < 0) {
        ASSERT_EQ(x[i], before[i]);
        ASSERT_EQ(x[i + 1], before[i + 1]);
        continue;
      }
      const int64_t at = i / (kHeads * kDim) * (kRope / 2) + d / 2;
      const double c = cos[at], s = inverse ? -sin[at] : sin[at];
      const double a = ToFloat(before[i]), b = ToFloat(before[i + 1]);
      const double error = 3 * 0x1p-24 * (std::fabs(a) + std::fabs(b));
      ASSERT_NEAR(ToFloat(x[i]), a * c - b * s, Bf16Tolerance(a * c - b * s, error));
      ASSERT_NEAR(ToFloat(x[i + 1]), a * s + b * c, Bf16Tolerance(a * s + b * c, error));
    }
  }
}

struct MhcCase {
  int streams;
  int64_t hidden;
};

class Mhc : public ::testing::TestWithParam<MhcCase> {
 protected:
  static constexpr int64_t kRows = 6;
  int n_ = GetParam().streams;
  int64_t hidden_ = GetParam().hidden;
  Random random_{static_cast<uint64_t>(n_)};
  ThreadPool pool_{2};
  std::vector<bf16> h_ = random_.Bf16s(kRows * n_ * hidden_, 0.3);
  std::vector<bf16> y_ = random_.Bf16s(kRows * hidden_);
  std::vector<float> pre_ = random_.Floats(kRows * n_), post_ = random_.Floats(kRows * n_);
  std::vector<float> comb_ = random_.Floats(kRows * n_ * n_);
};

double Sigmoid64(double x) { return 1 / (1 + std::exp(-x)); }

// Spec 2.3 in double precision on one row of mixes.
void SinkhornInDouble(std::vector<double>& c, int n, int iterations, double eps) {
  const auto divide = [&](bool rows) {
    for (int a = 0; a < n; ++a) {
      double sum = eps;
      for (int b = 0; b < n; ++b) sum += c[rows ? a * n + b : b * n + a];
      for (int b = 0; b < n; ++b) c[rows ? a * n + b : b * n + a] /= sum;
    }
  };
  for (int a = 0; a < n; ++a) {
    double sum = 0;
    for (int b = 0; b < n; ++b) sum += c[a * n + b] = std::exp(c[a * n + b]);
    for (int b = 0; b < n; ++b) c[a * n + b] = c[a * n + b] / sum + eps;
  }
  divide(false);
  for (int i = 1; i < iterations; ++i) divide(true), divide(false);
}

TEST_P(Mhc, CoefficientsAgreeWithDoublePrecision) {
  const int64_t mixes = (2 + n_) * n_, width = n_ * hidden_;
  const std::vector<float> fn = random_.Floats(mixes * width, 0.1), base = random_.Floats(mixes);
  const float scale[] = {0.7f, 1.3f, 0.9f};
  MhcArgs args;
  args.rows = kRows;
  args.hidden = hidden_;
  args.streams = n_;
  args.h = h_.data();
  args.fn = {fn.data(), mixes, width};
  args.scale = scale;
  args.base = base.data();
  args.sinkhorn_iterations = 7;
  args.norm_eps = 1e-20f;
  args.hc_eps = 1e-6f;
  args.pre = pre_.data();
  args.post = post_.data();
  args.comb = comb_.data();
  Kernels().mhc_mixes(pool_, args);
  for (int64_t r = 0; r < kRows; ++r) {
    const bf16* row = h_.data() + r * width;
    double squares = 0;
    for (int64_t k = 0; k < width; ++k) squares += std::pow(ToFloat(row[k]), 2);
    const double norm = 1 / std::sqrt(squares / static_cast<double>(width));
    std::vector<double> m(mixes);
    for (int64_t j = 0; j < mixes; ++j) {
      for (int64_t k = 0; k < width; ++k) m[j] += fn[j * width + k] * norm * ToFloat(row[k]);
      m[j] = m[j] * scale[j < n_ ? 0 : j < 2 * n_ ? 1 : 2] + base[j];
    }
    // Mixes of size 4 carry an error of a few 1e-7; sigmoids and normalisations do not enlarge it.
    for (int j = 0; j < n_; ++j) {
      ASSERT_NEAR(pre_[r * n_ + j], Sigmoid64(m[j]) + 1e-6, 2e-6);
      ASSERT_NEAR(post_[r * n_ + j], 2 * Sigmoid64(m[n_ + j]), 2e-6);
    }
    std::vector<double> c(m.begin() + 2 * n_, m.end());
    SinkhornInDouble(c, n_, 7, 1e-6);
    for (int i = 0; i < n_ * n_; ++i) ASSERT_NEAR(comb_[r * n_ * n_ + i], c[i], 2e-6) << i;
  }
}

TEST_P(Mhc, CollapseExpandAndMeanAreWeightedSumsRoundedOnce) {
  std::vector<bf16> x(kRows * hidden_), mixed = h_, tap(kRows * (hidden_ + 5));
  Kernels().mhc_collapse(pool_, h_.data(), pre_.data(), kRows, n_, hidden_, x.data());
  Kernels().mhc_expand(pool_, y_.data(), post_.data(), comb_.data(), kRows, n_, hidden_,
                       mixed.data());
  Kernels().stream_mean(pool_, h_.data(), kRows, n_, hidden_, tap.data(), hidden_ + 5);
  const double rounding = (n_ + 2) * 0x1p-24;
  for (int64_t i = 0; i < kRows * hidden_; ++i) {
    const int64_t r = i / hidden_, d = i % hidden_;
    const auto stream = [&](int s) { return ToFloat(h_[(r * n_ + s) * hidden_ + d]); };
    double sum = 0, size = 0, mean = 0, mean_size = 0;
    for (int s = 0; s < n_; ++s) {
      const double term = static_cast<double>(pre_[r * n_ + s]) * stream(s);
      sum += term;
      size += std::fabs(term);
      mean += stream(s) / static_cast<double>(n_);
      mean_size += std::fabs(stream(s));
    }
    ASSERT_NEAR(ToFloat(x[i]), sum, Bf16Tolerance(sum, rounding * size));
    ASSERT_NEAR(ToFloat(tap[r * (hidden_ + 5) + d]), mean,
                Bf16Tolerance(mean, rounding * mean_size));
    for (int t = 0; t < n_; ++t) {
      double out = static_cast<double>(post_[r * n_ + t]) * ToFloat(y_[i]), total = std::fabs(out);
      for (int s = 0; s < n_; ++s) {
        const double term = static_cast<double>(comb_[(r * n_ + s) * n_ + t]) * stream(s);
        out += term;
        total += std::fabs(term);
      }
      ASSERT_NEAR(ToFloat(mixed[(r * n_ + t) * hidden_ + d]), out,
                  Bf16Tolerance(out, rounding * total));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, Mhc,
                         ::testing::Values(MhcCase{1, 5}, MhcCase{2, 33}, MhcCase{4, 64},
                                           MhcCase{8, 7}),
                         [](const auto& info) { return std::to_string(info.param.streams); });

}  // namespace
}  // namespace deepinfer::kernels
