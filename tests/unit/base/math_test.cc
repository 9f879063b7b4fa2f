#include "base/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace deepinfer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Distance of `got` from the exact value, in units of the last place at the exact value.
double UlpError(float got, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(Exp, StaysWithinOneUlpOverTheWholeRange) {
  double worst = 0;
  float worst_at = 0;
  // A prime stride through the bit patterns visits every binade, both signs.
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 1009) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(x >= -87.3f && x <= 88.7f)) continue;
    const double error = UlpError(Exp(x), std::exp(static_cast<double>(x)));
    if (error > worst) {
      worst = error;
      worst_at = x;
    }
  }
  EXPECT_LE(worst, 1.0) << "at " << worst_at;
}

TEST(Exp, EndsOfTheRangeAreZeroInfinityAndNaN) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(-87.31f), 0.0f);
  EXPECT_EQ(Exp(-1e30f), 0.0f);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(88.73f), kInfinity);
  EXPECT_EQ(Exp(1e30f), kInfinity);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Sigmoid, IsMonotonicAndReachesBothLimits) {
  EXPECT_EQ(Sigmoid(0.0f), 0.5f);
  EXPECT_EQ(Sigmoid(kInfinity), 1.0f);
  EXPECT_EQ(Sigmoid(-kInfinity), 0.0f);
  float previous = 0.0f;
  for (float x = -90.0f; x < 90.0f; x += 0.125f) {
    const float y = Sigmoid(x);
    ASSERT_GE(y, previous) << x;
    ASSERT_NEAR(y, 1.0 / (1.0 + std::exp(-static_cast<double>(x))), 1e-7) << x;
    previous = y;
  }
}

}  // namespace
}  // namespace deepinfer
