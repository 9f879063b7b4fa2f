#include "model/v41/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deepinfer::model::v41 {
namespace {

constexpr int64_t kPairs = 32;

ModelConfig ReleaseRope() {
  ModelConfig config;
  config.rope_dim = 2 * kPairs;
  config.rope_theta = 10000;
  config.compress_rope_theta = 160000;
  config.rope_scaling = {16, 32, 1, 65536};
  return config;
}

struct Row {
  std::vector<float> cos = std::vector<float>(kPairs), sin = std::vector<float>(kPairs);
};

Row At(bool compressed, int64_t position) {
  Row row;
  const int64_t positions[] = {position};
  RopeTable(ReleaseRope(), compressed).Fill(positions, row.cos.data(), row.sin.data());
  return row;
}

TEST(RopeTable, PositionZeroTurnsNothing) {
  for (const bool compressed : {false, true}) {
    const Row row = At(compressed, 0);
    EXPECT_EQ(row.cos, std::vector<float>(kPairs, 1.0f));
    EXPECT_EQ(row.sin, std::vector<float>(kPairs, 0.0f));
  }
}

TEST(RopeTable, PositionOneTurnsByThePlainFrequencies) {
  const Row row = At(false, 1);
  for (int64_t i = 0; i < kPairs; ++i) {
    const double angle = std::pow(10000.0, -2.0 * static_cast<double>(i) / 64);
    EXPECT_NEAR(row.cos[i], std::cos(angle), 2e-7) << i;
    EXPECT_NEAR(row.sin[i], std::sin(angle), 2e-7) << i;
  }
}

// Spec model-v41 section 2.5.2: between pairs 15 and 25 the frequencies go over into a sixteenth.
TEST(RopeTable, YarnKeepsFastPairsAndStretchesSlowOnes) {
  const Row row = At(true, 1);
  for (int64_t i = 0; i < kPairs; ++i) {
    const double plain = std::pow(160000.0, -2.0 * static_cast<double>(i) / 64);
    const double ramp = std::min(std::max((static_cast<double>(i) - 15) / 10, 0.0), 1.0);
    const double angle = plain / 16 * ramp + plain * (1 - ramp);
    EXPECT_NEAR(row.sin[i], std::sin(angle), 2e-7) << i;
  }
}

// At the last position the angle is an fp32 product: its rounding moves the fast pairs by up to
// 2^-5, so the fp32 angle itself is the reference.
TEST(RopeTable, TheLastPositionUsesTheAccurateSineOfTheFp32Angle) {
  constexpr int64_t kLast = 1048575;
  const Row row = At(false, kLast);
  for (int64_t i = 0; i < kPairs; ++i) {
    const float exponent = static_cast<float>(2 * i) / 64.0f;
    const float power = static_cast<float>(std::pow(10000.0, static_cast<double>(exponent)));
    const double angle = static_cast<float>(kLast) * (1.0f / power);
    EXPECT_NEAR(row.cos[i], std::cos(angle), 1e-7) << i;
    EXPECT_NEAR(row.sin[i], std::sin(angle), 1e-7) << i;
    EXPECT_NEAR(row.cos[i] * row.cos[i] + row.sin[i] * row.sin[i], 1, 1e-6);
  }
}

TEST(RopeTable, ARowDoesNotDependOnItsNeighbours) {
  const std::vector<int64_t> positions = {9, 0, 1048575, 9};
  std::vector<float> cos(4 * kPairs), sin(4 * kPairs);
  RopeTable(ReleaseRope(), true).Fill(positions, cos.data(), sin.data());
  for (size_t p = 0; p < positions.size(); ++p) {
    const Row alone = At(true, positions[p]);
    const auto begin = static_cast<int64_t>(p) * kPairs;
    EXPECT_EQ(std::vector(cos.begin() + begin, cos.begin() + begin + kPairs), alone.cos);
    EXPECT_EQ(std::vector(sin.begin() + begin, sin.begin() + begin + kPairs), alone.sin);
  }
}

TEST(RopeTable, NoPositionsFillNothing) {
  RopeTable(ReleaseRope(), true).Fill({}, nullptr, nullptr);
}

}  // namespace
}  // namespace deepinfer::model::v41
