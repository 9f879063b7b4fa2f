#include "sampling/sampling_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

void ExpectRefused(const SamplingParams& params, const char* part, const char* other = "") {
  const Status status = ValidateSamplingParams(params);
  ASSERT_FALSE(status.has_value()) << part;
  EXPECT_THAT(status.error().message, HasSubstr(part));
  EXPECT_THAT(status.error().message, HasSubstr(other));
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
}

TEST(SamplingParams, NumbersOutsideTheirRangeAreNamed) {
  for (double bad : {kNan, kInfinity, -0.5, 100.5}) {
    ExpectRefused({.temperature = bad}, "temperature", "0 to 100");
  }
  for (double bad : {kNan, kInfinity, 0.0, -1.0, 1.01}) ExpectRefused({.top_p = bad}, "top_p");
  for (double bad : {kNan, kInfinity, -0.1, 1.01}) ExpectRefused({.min_p = bad}, "min_p");
  ExpectRefused({.top_k = -1}, "top_k -1");
  for (double bad : {kNan, kInfinity, 0.0, -1.0, 101.0}) {
    ExpectRefused({.repetition_penalty = bad}, "repetition_penalty", "0.01 to 100");
  }
  for (double bad : {kNan, kInfinity, -2.1, 2.1}) {
    ExpectRefused({.frequency_penalty = bad}, "frequency_penalty", "-2 to 2");
    ExpectRefused({.presence_penalty = bad}, "presence_penalty", "-2 to 2");
  }
  for (int64_t bad : {int64_t{0}, int64_t{-1}, kMaxTokensLimit + 1}) {
    ExpectRefused({.max_tokens = bad}, "max_tokens", "1 to 1048576");
  }
  ExpectRefused({.min_tokens = -1}, "min_tokens -1");
  ExpectRefused({.max_tokens = 5, .min_tokens = 6}, "min_tokens 6", "max_tokens 5");
  for (int64_t bad : {0, 129}) ExpectRefused({.n = bad}, "n ", "1 to 128");
  for (int64_t bad : {-1, 21}) {
    ExpectRefused({.logprobs = bad}, "logprobs", "0 to 20");
    ExpectRefused({.prompt_logprobs = bad}, "prompt_logprobs", "0 to 20");
  }
}

TEST(SamplingParams, ListsBeyondTheirLimitsAreNamed) {
  ExpectRefused({.logit_bias = {{3, 100.5}}}, "100.5 of token 3", "-100 to 100");
  ExpectRefused({.logit_bias = {{3, kNan}}}, "logit_bias nan");
  ExpectRefused({.logit_bias = {{3, 1}, {4, 1}, {3, 2}}}, "token 3 more than once");
  ExpectRefused({.logit_bias = {{-1, 1}}}, "token id -1 of logit_bias");
  std::vector<LogitBias> biases;
  for (int32_t i = 0; i < 1025; ++i) biases.push_back({i, 1});
  ExpectRefused({.logit_bias = biases}, "logit_bias has 1025 entries", "at most 1024");
  ExpectRefused({.stop = std::vector<std::string>(10000, "x")}, "stop has 10000 entries",
                "at most 64");
  ExpectRefused({.stop = {"a", ""}}, "string 1 of stop has 0 bytes", "1 to 256");
  ExpectRefused({.stop = {std::string(257, 'a')}}, "string 0 of stop has 257 bytes");
  ExpectRefused({.stop_token_ids = std::vector<int32_t>(129)}, "stop_token_ids has 129 entries");
  ExpectRefused({.allowed_token_ids = {-5}}, "token id -5 of allowed_token_ids");
  ExpectRefused({.bad_token_ids = {-6}}, "token id -6 of bad_token_ids");
  ExpectRefused({.stop_token_ids = {-7}}, "token id -7 of stop_token_ids");
}

TEST(SamplingParams, TokenIdsAreCheckedAgainstTheVocabulary) {
  for (const SamplingParams& params :
       {SamplingParams{.logit_bias = {{100, 1}}}, SamplingParams{.allowed_token_ids = {100}},
        SamplingParams{.bad_token_ids = {100}}, SamplingParams{.stop_token_ids = {100}}}) {
    EXPECT_TRUE(ValidateTokenIds(params, 101).has_value());
    const Status status = ValidateTokenIds(params, 100);
    ASSERT_FALSE(status.has_value());
    EXPECT_THAT(status.error().message, HasSubstr("token id 100 of "));
    EXPECT_THAT(status.error().message, HasSubstr("outside 0 to 99"));
  }
}

TEST(SamplingParams, TheEdgesOfAllRangesAreAccepted) {
  EXPECT_TRUE(ValidateSamplingParams({}).has_value());
  SamplingParams params{100, 1, 1, 1, ~uint64_t{0}};
  params.repetition_penalty = 0.01;
  params.frequency_penalty = -2;
  params.presence_penalty = 2;
  params.logit_bias = {{0, -100}, {1, 100}};
  params.stop = std::vector<std::string>(64, std::string(256, 'x'));
  params.stop_token_ids = std::vector<int32_t>(128);
  params.max_tokens = params.min_tokens = kMaxTokensLimit;
  params.n = 128;
  params.logprobs = 0;
  params.prompt_logprobs = 20;
  EXPECT_TRUE(ValidateSamplingParams(params).has_value());
}

}  // namespace
}  // namespace deepinfer
