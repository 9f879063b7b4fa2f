#include "base/numeric.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace deepinfer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

// ---- bf16 ----

TEST(Bf16, EveryCodeSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const bf16 value{static_cast<uint16_t>(bits)};
    const float wide = ToFloat(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(RoundBf16(wide))) << bits;
    } else {
      EXPECT_EQ(ToBf16(wide).bits, bits);
    }
  }
}

TEST(Bf16, HalfwayBetweenNeighboursGoesToTheEvenCode) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {  // up to the step from the largest to infinity
    const float halfway = std::bit_cast<float>((bits << 16) | 0x8000u);
    const float below = std::bit_cast<float>((bits << 16) | 0x7fffu);
    const float above = std::bit_cast<float>((bits << 16) | 0x8001u);
    const uint32_t even = bits + (bits & 1);
    ASSERT_EQ(ToBf16(halfway).bits, even) << bits;
    ASSERT_EQ(ToBf16(below).bits, bits) << bits;
    ASSERT_EQ(ToBf16(above).bits, bits + 1) << bits;
    ASSERT_EQ(ToBf16(-halfway).bits, even | 0x8000u) << bits;
  }
}

TEST(Bf16, ExtremesOverflowToInfinityAndNaNStaysNaN) {
  EXPECT_EQ(RoundBf16(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(RoundBf16(-std::numeric_limits<float>::max()), -kInfinity);
  EXPECT_EQ(RoundBf16(kInfinity), kInfinity);
  // A NaN whose upper half alone would read as infinity.
  EXPECT_TRUE(std::isnan(RoundBf16(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(std::isnan(RoundBf16(std::bit_cast<float>(0xffffffffu))));
  EXPECT_TRUE(std::signbit(RoundBf16(-0.0f)));
}

// ---- e4m3 ----

double E4M3ByDefinition(int code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

TEST(E4M3, EveryCodeHasItsDefinedValueAndSurvivesTheRoundTrip) {
  for (int code = 0; code < 256; ++code) {
    const float value = E4M3ToFloat(static_cast<uint8_t>(code));
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << code;
      continue;
    }
    EXPECT_EQ(value, E4M3ByDefinition(code)) << code;
    EXPECT_EQ(std::signbit(value), (code & 0x80) != 0) << code;
    EXPECT_EQ(FloatToE4M3(value), code);
  }
}

// The nearest code by search over all values, ties to the even code.
uint8_t NearestE4M3(float x) {
  const double magnitude = std::fabs(static_cast<double>(x));
  int best = 0;
  for (int code = 1; code <= 0x7e; ++code) {
    const double distance = std::fabs(E4M3ByDefinition(code) - magnitude);
    const double best_distance = std::fabs(E4M3ByDefinition(best) - magnitude);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) best = code;
  }
  return static_cast<uint8_t>(best | (std::signbit(x) ? 0x80 : 0));
}

TEST(E4M3, RoundingAgreesWithASearchForTheNearestCode) {
  // Every midpoint, its neighbours, and a dense sweep of all binades around the format's range.
  std::vector<float> inputs;
  for (int code = 0; code < 0x7e; ++code) {
    const auto midpoint =
        static_cast<float>((E4M3ByDefinition(code) + E4M3ByDefinition(code + 1)) / 2);
    inputs.insert(inputs.end(),
                  {midpoint, std::nextafter(midpoint, 0.0f), std::nextafter(midpoint, kInfinity)});
  }
  for (uint32_t bits = 0; bits < 0x45000000u; bits += 48611) {
    inputs.push_back(std::bit_cast<float>(bits));
  }
  for (float x : inputs) {
    ASSERT_EQ(FloatToE4M3(x), NearestE4M3(x)) << x;
    ASSERT_EQ(FloatToE4M3(-x), NearestE4M3(-x)) << -x;
  }
}

TEST(E4M3, LargeValuesSaturateInsteadOfBecomingNaN) {
  for (float x : {448.0f, 449.0f, 464.0f, 1e10f, kInfinity}) {
    EXPECT_EQ(FloatToE4M3(x), 0x7e) << x;
    EXPECT_EQ(FloatToE4M3(-x), 0xfe) << x;
  }
  EXPECT_EQ(FloatToE4M3(kNaN), 0x7f);
  EXPECT_EQ(FloatToE4M3(-kNaN), 0x7f);
}

// ---- e2m1 ----

TEST(E2M1, EveryCodeSurvivesTheRoundTrip) {
  constexpr std::array<float, 8> kMagnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (int code = 0; code < 16; ++code) {
    const float value = E2M1ToFloat(static_cast<uint8_t>(code));
    EXPECT_EQ(std::fabs(value), kMagnitudes[code & 7]);
    EXPECT_EQ(std::signbit(value), code >= 8);
    EXPECT_EQ(FloatToE2M1(value), code);
  }
}

TEST(E2M1, MidpointsGoToTheEvenCodeAndTheirNeighboursToTheNearest) {
  constexpr std::array<float, 7> kMidpoints = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
  for (int i = 0; i < 7; ++i) {
    const float midpoint = kMidpoints[i];
    EXPECT_EQ(FloatToE2M1(midpoint), i + (i & 1)) << midpoint;
    EXPECT_EQ(FloatToE2M1(-midpoint), (i + (i & 1)) | 8) << midpoint;
    EXPECT_EQ(FloatToE2M1(std::nextafter(midpoint, 0.0f)), i) << midpoint;
    EXPECT_EQ(FloatToE2M1(std::nextafter(midpoint, 9.0f)), i + 1) << midpoint;
  }
}

TEST(E2M1, LargeValuesSaturateAndTheSignOfZeroIsKept) {
  EXPECT_EQ(FloatToE2M1(6.001f), 7);
  EXPECT_EQ(FloatToE2M1(kInfinity), 7);
  EXPECT_EQ(FloatToE2M1(-kInfinity), 15);
  EXPECT_EQ(FloatToE2M1(-0.0f), 8);
  EXPECT_EQ(FloatToE2M1(-1e-30f), 8);
}

// ---- e8m0 ----

TEST(E8M0, EveryCodeIsItsPowerOfTwo) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(E8M0ToFloat(static_cast<uint8_t>(code)), std::ldexp(1.0, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(E8M0ToFloat(255)));
}

TEST(E8M0, CeilPowerOfTwoIsExactOnPowersAndRoundsUpElsewhere) {
  for (int exponent = -126; exponent <= 126; ++exponent) {
    const auto power = static_cast<float>(std::ldexp(1.0, exponent));
    EXPECT_EQ(CeilPowerOfTwoE8M0(power), exponent + 127);
    EXPECT_EQ(CeilPowerOfTwoE8M0(std::nextafter(power, kInfinity)), exponent + 128);
    EXPECT_EQ(CeilPowerOfTwoE8M0(std::nextafter(power * 2, 0.0f)), exponent + 128);
  }
}

}  // namespace
}  // namespace deepinfer
