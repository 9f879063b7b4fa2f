#include "sampling/logprobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sampling/sampler.h"

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomRow(size_t size, float deviation) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> row(size);
  for (float& z : row) z = normal(random);
  return row;
}

TEST(Logprobs, AgreeWithDoublePrecisionAtEveryVocabularySize) {
  RowScratch scratch;
  TokenLogprobs out;
  for (const size_t size : {size_t{1}, size_t{63}, size_t{64}, size_t{1000}, size_t{129280}}) {
    for (const float deviation : {0.1f, 1.0f, 10.0f}) {
      const std::vector<float> row = RandomRow(size, deviation);
      const double max = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (const float z : row) sum += std::exp(z - max);
      for (const size_t token : {size_t{0}, size / 2, size - 1}) {
        ASSERT_TRUE(RawLogprobs(row, static_cast<int32_t>(token), 0, scratch, out).has_value());
        EXPECT_NEAR(out.chosen.logprob, row[token] - max - std::log(sum), 2e-6);
      }
    }
  }
}

TEST(Logprobs, TopIsOrderedAndTiesGoToTheLowestId) {
  RowScratch scratch;
  TokenLogprobs out;
  const std::vector<float> row = {1, 3, 2, 3, -kInfinity, 3};
  ASSERT_TRUE(RawLogprobs(row, 5, 4, scratch, out).has_value());
  ASSERT_EQ(out.top.size(), 4u);
  EXPECT_EQ(out.top[0].token, 1);
  EXPECT_EQ(out.top[1].token, 3);
  EXPECT_EQ(out.top[2].token, 5);
  EXPECT_EQ(out.top[3].token, 2);
  EXPECT_EQ(out.top[0].logprob, out.chosen.logprob);
  EXPECT_EQ(out.rank, 3);
  ASSERT_TRUE(RawLogprobs(row, 4, 20, scratch, out).has_value());
  EXPECT_EQ(out.top.size(), 5u) << "a token without probability is not among the best";
  EXPECT_EQ(out.chosen.logprob, -kInfinity);
  EXPECT_EQ(out.rank, 6);
}

TEST(Logprobs, RawOnesIgnoreTheParametersAndProcessedOnesFollowThem) {
  const std::vector<float> row = {1, 2, 3, 4};
  const SamplingParams params{.temperature = 2, .top_k = 2, .logit_bias = {{0, 10}}, .logprobs = 4};
  TokenLogprobs raw, processed, plain;
  RowScratch scratch;
  const int32_t token = *Sampler(LogprobsMode::kRaw).Sample({.logits = row}, params, &raw);
  ASSERT_TRUE(RawLogprobs(row, token, 4, scratch, plain).has_value());
  EXPECT_EQ(raw, plain);
  EXPECT_EQ(*Sampler(LogprobsMode::kProcessed).Sample({.logits = row}, params, &processed), token);
  ASSERT_EQ(processed.top.size(), 2u);
  EXPECT_EQ(processed.top[0].token, 0);
  EXPECT_NEAR(processed.top[0].logprob, -std::log1p(std::exp((4 - 11) / 2.0)), 2e-6);
  EXPECT_NEAR(processed.top[1].logprob, (4 - 11) / 2.0 + processed.top[0].logprob, 2e-6);
}

TEST(Logprobs, GreedyDrawsHaveLogprobsToo) {
  const std::vector<float> row = {1, 2, 3};
  TokenLogprobs raw, processed;
  EXPECT_EQ(*Sampler().Sample({.logits = row}, {.logprobs = 1}, &raw), 2);
  EXPECT_EQ(*Sampler(LogprobsMode::kProcessed).Sample({.logits = row}, {.logprobs = 1}, &processed),
            2);
  EXPECT_EQ(raw, processed);
  EXPECT_EQ(raw.rank, 1);
  EXPECT_EQ(raw.top.size(), 1u);
}

TEST(Logprobs, ChosenTokensOutsideTheRowAndBrokenRowsAreErrors) {
  RowScratch scratch;
  TokenLogprobs out;
  const std::vector<float> row = {1, 2};
  for (const int32_t bad : {-1, 2}) {
    const Status status = RawLogprobs(row, bad, 0, scratch, out);
    ASSERT_FALSE(status.has_value());
    EXPECT_THAT(status.error().message, HasSubstr("outside 0 to 1"));
  }
  EXPECT_FALSE(RawLogprobs(std::vector<float>{1, NAN}, 0, 0, scratch, out).has_value());
}

}  // namespace
}  // namespace deepinfer
