#include "sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "tests/support/chi_square.h"

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

std::vector<float> TestLogits(size_t size = 32) {
  std::vector<float> logits(size);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 37) % 32) * 0.17f - 2.0f;
  }
  logits[5] = -kInfinity;
  return logits;
}

// Draws at consecutive positions follow `p`.
void ExpectDistribution(const SampleRow& first, const SamplingParams& params, int draws,
                        const std::vector<double>& p) {
  Sampler sampler;
  SampleRow row = first;
  std::vector<int> counts(p.size());
  for (row.position = 0; row.position < draws; ++row.position) {
    const auto token = sampler.Sample(row, params);
    ASSERT_TRUE(token.has_value());
    ++counts[static_cast<size_t>(*token)];
  }
  const ChiSquare test = TestCounts(counts, p);
  EXPECT_LT(test.statistic, test.bound)
      << "T " << params.temperature << " top_p " << params.top_p << " top_k " << params.top_k
      << " min_p " << params.min_p << ", " << p.size() << " tokens";
}

std::vector<SamplingParams> FilterCombinations() {
  std::vector<SamplingParams> out;
  for (double temperature : {0.5, 1.0, 2.5}) {
    for (double top_p : {1.0, 0.7}) {
      for (int64_t top_k : {0, 6}) {
        for (double min_p : {0.0, 0.1}) out.push_back({temperature, top_p, top_k, min_p, 1234});
      }
    }
  }
  return out;
}

// A filter that keeps one token too many or too few, or noise keyed by rank instead of id, moves
// the statistic far beyond the bound.
TEST(BestToken, IsWhatSampleTakesOfTheRow) {
  const auto best_of = [](const std::vector<float>& logits) {
    // NaN before all, then the largest, then the lowest id.
    size_t best = 0;
    for (size_t i = 1; i < logits.size(); ++i) {
      if (std::isnan(logits[best])) break;
      if (std::isnan(logits[i]) || logits[i] > logits[best]) best = i;
    }
    return BestToken(logits[best], static_cast<int32_t>(best), std::ssize(logits));
  };
  Sampler sampler;
  const std::vector<std::vector<float>> rows = {
      {1, 3, 3, 2},      {-kInfinity, -5}, {-kInfinity, -kInfinity, -kInfinity},
      {0, kInfinity, 3}, {0, kNan, 700},   TestLogits(200)};
  for (const std::vector<float>& row : rows) {
    const auto want = sampler.Sample(row, {}, 0), got = best_of(row);
    ASSERT_EQ(got.has_value(), want.has_value());
    if (want) {
      EXPECT_EQ(*got, *want);
    } else {
      EXPECT_EQ(got.error().message, want.error().message);
    }
  }
}

TEST(TakesBest, NotWhereAnythingElseOfTheRowCounts) {
  EXPECT_TRUE(TakesBest({}, {}));
  EXPECT_TRUE(
      TakesBest({}, {.top_p = 0.5, .top_k = 3, .seq_seed = 9}));  // greedy whatever these are
  EXPECT_FALSE(TakesBest({}, {.temperature = 0.1}));
  EXPECT_FALSE(TakesBest({}, {.repetition_penalty = 1.1}));
  EXPECT_FALSE(TakesBest({}, {.frequency_penalty = 0.1}));
  EXPECT_FALSE(TakesBest({}, {.presence_penalty = 0.1}));
  EXPECT_FALSE(TakesBest({}, {.logit_bias = {{1, 2.0}}}));
  EXPECT_FALSE(TakesBest({}, {.allowed_token_ids = {1}}));
  EXPECT_FALSE(TakesBest({}, {.bad_token_ids = {1}}));
  EXPECT_FALSE(TakesBest({}, {.min_tokens = 1}));
  EXPECT_FALSE(TakesBest({}, {.logprobs = 0}));
  const uint32_t mask[] = {1};
  EXPECT_FALSE(TakesBest({.grammar_mask = mask}, {}));
}

TEST(Sampler, DrawsFollowTheExactDistributionUnderEveryFilterCombination) {
  const std::vector<float> logits = TestLogits();
  for (const SamplingParams& params : FilterCombinations()) {
    ExpectDistribution({.logits = logits}, params, 100000, Expected(logits, params));
  }
}

// Whole blocks of a row take another path than its end.
TEST(Sampler, DrawsFollowTheExactDistributionInWholeBlocks) {
  const std::vector<float> logits = TestLogits(160);
  for (const SamplingParams& params : FilterCombinations()) {
    ExpectDistribution({.logits = logits}, params, 10000, Expected(logits, params));
  }
}

TEST(Sampler, DrawsFollowTheExactDistributionAfterBiasMaskAndPenalties) {
  const std::vector<float> logits = TestLogits();
  TokenHistory history(std::vector<int32_t>{1, 2});
  for (const int32_t token : {2, 9, 9, 20}) history.Append(token);
  const std::vector<uint32_t> mask = {0x7fffff7fu};  // neither 7 nor 31
  std::vector<float> processed = logits;
  processed[3] += 1.5f;
  processed[7] = processed[31] = processed[12] = -kInfinity;
  for (const size_t seen : {1, 2, 9, 20}) {
    processed[seen] *= processed[seen] > 0 ? 1 / 1.25f : 1.25f;
  }
  processed[2] -= 0.25f + 0.5f;
  processed[9] -= 2 * 0.25f + 0.5f;
  processed[20] -= 0.25f + 0.5f;
  for (SamplingParams params : FilterCombinations()) {
    const std::vector<double> p = Expected(processed, params);
    params.repetition_penalty = 1.25;
    params.frequency_penalty = 0.25;
    params.presence_penalty = 0.5;
    params.logit_bias = {{3, 1.5}};
    params.bad_token_ids = {12};
    ExpectDistribution({.logits = logits, .history = &history, .grammar_mask = mask}, params, 20000,
                       p);
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
    const int32_t free = *sampler.Sample(logits, {.temperature = 1, .seq_seed = 5}, position);
    const int32_t all_kept = *sampler.Sample(
        logits, {.temperature = 1, .top_p = 0.999999999, .top_k = 31, .seq_seed = 5}, position);
    EXPECT_EQ(free, all_kept);
    EXPECT_EQ(free, *Sampler().Sample(logits, {.temperature = 1, .seq_seed = 5}, position));
  }
}

TEST(Sampler, SeedAndPositionBothChangeTheDraw) {
  Sampler sampler;
  const std::vector<float> logits(1000, 0.0f);
  const auto draw = [&](uint64_t seed, int64_t position) {
    return *sampler.Sample(logits, {.temperature = 1, .seq_seed = seed}, position);
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
    std::vector<float> row(1000, 1.0f);
    row[777] = row[900] = kNan;
    EXPECT_THAT(sampler.Sample(row, {.temperature = temperature}, 0).error().message,
                HasSubstr("token 777 is nan"));
    auto empty =
        sampler.Sample(std::vector<float>{-kInfinity, -kInfinity}, {.temperature = temperature}, 0);
    ASSERT_FALSE(empty.has_value());
    EXPECT_THAT(empty.error().message, HasSubstr("none of the 2 logits is finite"));
  }
}

// A NaN is the model's failure, whether or not a mask would hide it.
TEST(Sampler, MaskedRowsAndMaskedNansAreErrors) {
  Sampler sampler;
  const std::vector<uint32_t> nothing = {0};
  const std::vector<uint32_t> first = {1};
  const auto all_masked =
      sampler.Sample({.logits = std::vector<float>{1, 2, 3}, .grammar_mask = nothing}, {});
  ASSERT_FALSE(all_masked.has_value());
  EXPECT_THAT(all_masked.error().message, HasSubstr("after bias, masks and penalties"));
  EXPECT_THAT(all_masked.error().message, HasSubstr("none of the 3 logits is finite"));
  const auto nan =
      sampler.Sample({.logits = std::vector<float>{1, kNan}, .grammar_mask = first}, {});
  ASSERT_FALSE(nan.has_value());
  EXPECT_THAT(nan.error().message, HasSubstr("token 1 is nan"));
}

TEST(Sampler, PaddingBeyondTheVocabularyNeverWins) {
  Sampler sampler;
  std::vector<float> padded(256, 1e9f);
  for (size_t i = 0; i < 130; ++i) padded[i] = static_cast<float>(i % 3);
  const std::vector<uint32_t> mask(8, ~uint32_t{0});
  const SampleRow row{.logits = std::span(padded).first(130), .grammar_mask = mask};
  for (double temperature : {0.0, 1.0, 50.0}) {
    const auto token = sampler.Sample(row, {.temperature = temperature});
    ASSERT_TRUE(token.has_value());
    EXPECT_LT(*token, 130);
  }
}

// Draws are independent of the order they are made in and of the rows between them.
TEST(Sampler, DrawsDoNotDependOnTheirOrder) {
  Sampler sampler;
  const std::vector<float> logits = TestLogits(200);
  const SamplingParams params{.temperature = 1, .top_p = 0.9};
  std::map<std::pair<uint64_t, int64_t>, int32_t> drawn;
  const auto draw = [&](uint64_t seed, int64_t position) {
    SamplingParams own = params;
    own.seq_seed = seed;
    return *sampler.Sample(logits, own, position);
  };
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int64_t position = 0; position < 20; ++position) {
      drawn[{seed, position}] = draw(seed, position);
    }
  }
  for (int64_t position = 19; position >= 0; --position) {
    for (uint64_t seed = 10; seed-- > 0;) {
      EXPECT_EQ(draw(seed, position), (drawn[{seed, position}]));
      *sampler.Sample(std::vector<float>{1, 2}, {.temperature = 2, .top_k = 1}, position);
    }
  }
}

TEST(Sampler, LogProbabilitiesAreThoseOfTheDraws) {
  const std::vector<float> logits = TestLogits();
  Sampler sampler;
  std::vector<float> log_p(logits.size());
  for (const SamplingParams& params : FilterCombinations()) {
    ASSERT_TRUE(sampler.LogProbabilities({.logits = logits}, params, log_p).has_value());
    const std::vector<double> p = Expected(logits, params);
    for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(std::exp(double{log_p[i]}), p[i], 1e-6);
  }
  ASSERT_TRUE(sampler.LogProbabilities({.logits = logits}, {}, log_p).has_value());
  const size_t best = static_cast<size_t>(*sampler.Sample(logits, {}, 0));
  for (size_t i = 0; i < log_p.size(); ++i) EXPECT_EQ(log_p[i], i == best ? 0 : -kInfinity);
}

}  // namespace
}  // namespace deepinfer
