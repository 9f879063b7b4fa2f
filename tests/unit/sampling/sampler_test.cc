#include "sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The distribution the filters define, written down directly: the oracle.
std::vector<double> Expected(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  const auto weight = [&](size_t i) {
    return std::exp((static_cast<double>(logits[i]) - logits[order[0]]) / params.temperature);
  };
  std::vector<size_t> kept;
  for (size_t i : order) {
    if (weight(i) >= params.min_p) kept.push_back(i);
  }
  if (params.top_k > 0) kept.resize(std::min(kept.size(), static_cast<size_t>(params.top_k)));
  double total = 0;
  for (size_t i : kept) total += weight(i);
  std::vector<double> p(logits.size(), 0);
  double before = 0;
  for (size_t i : kept) {
    if (params.top_p < 1 && before > params.top_p) break;
    p[i] = weight(i) / total;
    before += p[i];
  }
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

std::vector<float> TestLogits() {
  std::vector<float> logits(32);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 37) % 32) * 0.17f - 2.0f;
  }
  logits[5] = -kInfinity;
  return logits;
}

// A filter that keeps one token too many or too few, or noise keyed by rank instead of id, moves
// this statistic far beyond the bound.
TEST(Sampler, DrawsFollowTheExactDistributionUnderEveryFilterCombination) {
  const std::vector<float> logits = TestLogits();
  Sampler sampler;
  constexpr int kDraws = 20000;
  for (double temperature : {0.5, 1.0, 2.5}) {
    for (double top_p : {1.0, 0.7}) {
      for (int64_t top_k : {0, 6}) {
        for (double min_p : {0.0, 0.1}) {
          const SamplingParams params{temperature, top_p, top_k, min_p, 1234};
          const std::vector<double> p = Expected(logits, params);
          std::vector<int> counts(logits.size());
          for (int position = 0; position < kDraws; ++position) {
            const auto token = sampler.Sample(logits, params, position);
            ASSERT_TRUE(token.has_value());
            ++counts[static_cast<size_t>(*token)];
          }
          double chi2 = 0;
          int cells = 0;
          for (size_t i = 0; i < p.size(); ++i) {
            if (p[i] == 0) {
              EXPECT_EQ(counts[i], 0) << "token " << i << " was filtered out";
              continue;
            }
            const double e = p[i] * kDraws;
            chi2 += (counts[i] - e) * (counts[i] - e) / e;
            ++cells;
          }
          // Mean + 5 standard deviations of chi-squared with cells - 1 degrees of freedom.
          const double degrees = cells - 1;
          EXPECT_LT(chi2, degrees + 5 * std::sqrt(2 * degrees) + 5)
              << "T " << temperature << " top_p " << top_p << " top_k " << top_k << " min_p "
              << min_p;
        }
      }
    }
  }
}

TEST(Sampler, GreedyTakesTheLowestIdAmongEqualLogits) {
  Sampler sampler;
  EXPECT_EQ(*sampler.Sample(std::vector<float>{1, 3, 2, 3}, {}, 0), 1);
  EXPECT_EQ(*sampler.Sample(std::vector<float>{-kInfinity, -4}, {}, 9), 1);
}

TEST(Sampler, TopKKeepsExactlyKAndTheLowestIdsAmongEqualLogits) {
  Sampler sampler;
  const std::vector<float> logits(16, 0.5f);
  SamplingParams params{.temperature = 1, .top_k = 3};
  std::map<int32_t, int> counts;
  for (int64_t position = 0; position < 600; ++position) {
    ++counts[*sampler.Sample(logits, params, position)];
  }
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts.rbegin()->first, 2);
}

TEST(Sampler, OneSurvivesTheSmallestTopP) {
  Sampler sampler;
  const std::vector<float> logits = {0, 5, 1};
  const SamplingParams params{.temperature = 1, .top_p = 1e-9};
  for (int64_t position = 0; position < 50; ++position) {
    EXPECT_EQ(*sampler.Sample(logits, params, position), 1);
  }
}

TEST(Sampler, TinyTemperatureIsGreedyAndDoesNotOverflow) {
  Sampler sampler;
  const std::vector<float> logits = {-3e38f, 2.0f, 2.5f, 3e38f, 1.0f};
  for (double temperature : {1e-300, 1e-30, 1e-3}) {
    EXPECT_EQ(*sampler.Sample(logits, {.temperature = temperature}, 4), 3);
  }
}

// The token may not depend on filters that keep it anyway, nor on the calls made before.
TEST(Sampler, NoiseBelongsToTheTokenIdNotToItsRank) {
  Sampler sampler;
  const std::vector<float> logits = TestLogits();
  for (int64_t position = 0; position < 300; ++position) {
    const int32_t free = *sampler.Sample(logits, {.temperature = 1, .seed = 5}, position);
    const int32_t all_kept = *sampler.Sample(
        logits, {.temperature = 1, .top_p = 0.999999999, .top_k = 31, .seed = 5}, position);
    EXPECT_EQ(free, all_kept);
    EXPECT_EQ(free, *Sampler().Sample(logits, {.temperature = 1, .seed = 5}, position));
  }
}

TEST(Sampler, SeedAndPositionBothChangeTheDraw) {
  Sampler sampler;
  const std::vector<float> logits(1000, 0.0f);
  const auto draw = [&](uint64_t seed, int64_t position) {
    return *sampler.Sample(logits, {.temperature = 1, .seed = seed}, position);
  };
  EXPECT_NE(draw(1, 1), draw(2, 1));
  EXPECT_NE(draw(1, 1), draw(1, 2));
  EXPECT_NE(draw(1, 1), draw(uint64_t{1} << 40, 1));
}

TEST(Sampler, BrokenLogitsAreAnErrorThatNamesTheToken) {
  Sampler sampler;
  for (double temperature : {0.0, 1.0}) {
    auto nan = sampler.Sample(std::vector<float>{0, 1, kNan}, {.temperature = temperature}, 0);
    ASSERT_FALSE(nan.has_value());
    EXPECT_THAT(nan.error().message, HasSubstr("token 2 is nan"));
    EXPECT_FALSE(sampler.Sample(std::vector<float>{kInfinity, 1}, {.temperature = temperature}, 0));
    auto empty =
        sampler.Sample(std::vector<float>{-kInfinity, -kInfinity}, {.temperature = temperature}, 0);
    ASSERT_FALSE(empty.has_value());
    EXPECT_THAT(empty.error().message, HasSubstr("none of the 2 logits is finite"));
  }
}

TEST(SamplingParams, ValuesOutsideTheirRangeAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto expect = [](SamplingParams params, const char* name) {
    const Status status = ValidateSamplingParams(params);
    ASSERT_FALSE(status.has_value()) << name;
    EXPECT_THAT(status.error().message, HasSubstr(name));
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  };
  for (double bad : {nan, infinity, -0.5, 100.5}) expect({.temperature = bad}, "temperature");
  for (double bad : {nan, infinity, 0.0, -1.0, 1.01}) expect({.top_p = bad}, "top_p");
  for (double bad : {nan, infinity, -0.1, 1.01}) expect({.min_p = bad}, "min_p");
  expect({.top_k = -1}, "top_k");
  EXPECT_TRUE(ValidateSamplingParams({}).has_value());
  EXPECT_TRUE(ValidateSamplingParams({100, 1, 1, 1, ~uint64_t{0}}).has_value());
}

}  // namespace
}  // namespace deepinfer
