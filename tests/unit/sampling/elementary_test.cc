#include "sampling/elementary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deepinfer {
namespace {

TEST(Elementary, LogarithmAgreesWithTheLibrary) {
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    EXPECT_NEAR(LogDouble(x), std::log(x), 1e-15 * std::fabs(std::log(x)) + 1e-15) << x;
  }
  EXPECT_EQ(LogDouble(1), 0);
}

TEST(Elementary, ExponentialAgreesWithTheLibrary) {
  for (double x = 0; x > -700; x -= 0.0317) {
    EXPECT_NEAR(ExpDouble(x) / std::exp(x), 1, 1e-15) << x;
  }
  EXPECT_EQ(ExpDouble(0), 1);
  EXPECT_EQ(ExpDouble(-701), 0);
  EXPECT_EQ(ExpDouble(-HUGE_VAL), 0);
}

}  // namespace
}  // namespace deepinfer
