#include "sampling/logit_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace deepinfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kMasked = -std::numeric_limits<float>::infinity();

std::vector<float> Processed(SampleRow row, const std::vector<float>& logits,
                             const SamplingParams& params) {
  row.logits = logits;
  std::vector<float> out = logits;
  const Status status = ApplyLogitProcessors(row, params, out);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  return out;
}

std::string Refusal(SampleRow row, const std::vector<float>& logits, const SamplingParams& params) {
  row.logits = logits;
  std::vector<float> out = logits;
  const Status status = ApplyLogitProcessors(row, params, out);
  return status ? "" : status.error().message;
}

TEST(LogitProcessor, AllowedAndBadTokensAndBias) {
  EXPECT_THAT(Processed({}, {1, 2, 3, 4}, {.allowed_token_ids = {3, 1}}),
              ElementsAre(kMasked, 2, kMasked, 4));
  EXPECT_THAT(Processed({}, {1, 2, 3, 4},
                        {.logit_bias = {{0, 10}, {1, -2.5}},
                         .allowed_token_ids = {1, 2, 3},
                         .bad_token_ids = {2}}),
              ElementsAre(kMasked, -0.5f, kMasked, 4));
}

TEST(LogitProcessor, EndTokensAreHeldBackUntilMinTokens) {
  TokenHistory history;
  const SampleRow row{.history = &history, .eos_token = 0};
  const SamplingParams params{.stop_token_ids = {2}, .min_tokens = 2};
  EXPECT_THAT(Processed(row, {1, 2, 3}, params), ElementsAre(kMasked, 2, kMasked));
  history.Append(1);
  EXPECT_THAT(Processed(row, {1, 2, 3}, params), ElementsAre(kMasked, 2, kMasked));
  history.Append(1);
  EXPECT_THAT(Processed(row, {1, 2, 3}, params), ElementsAre(1, 2, 3));
}

TEST(LogitProcessor, MaskBitsBeyondTheVocabularyMeanNothing) {
  std::vector<float> logits(70);
  const std::vector<uint32_t> mask = {0xfffffffeu, 0xffffffffu, 0xffffffdfu};
  const std::vector<float> out = Processed({.grammar_mask = mask}, logits, {});
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], i == 0 || i == 69 ? kMasked : 0) << i;
  }
}

TEST(LogitProcessor, PenaltiesFollowTheirFormulas) {
  TokenHistory history(std::vector<int32_t>{0, 1});
  for (const int32_t token : {1, 2, 2, 2}) history.Append(token);
  const SampleRow row{.history = &history};
  EXPECT_THAT(Processed(row, {4, -4, 8, 5}, {.repetition_penalty = 2}), ElementsAre(2, -8, 4, 5));
  EXPECT_THAT(Processed(row, {4, -4, 8, 5}, {.frequency_penalty = 0.5}),
              ElementsAre(4, -4.5f, 6.5f, 5));
  EXPECT_THAT(Processed(row, {4, -4, 8, 5}, {.presence_penalty = -0.5}),
              ElementsAre(4, -3.5f, 8.5f, 5));
}

// A bias that lifts a logit above 0 turns the repetition penalty from a product to a quotient.
TEST(LogitProcessor, BiasComesBeforePenalties) {
  TokenHistory history(std::vector<int32_t>{0});
  EXPECT_THAT(
      Processed({.history = &history}, {-4, 1}, {.repetition_penalty = 2, .logit_bias = {{0, 8}}}),
      ElementsAre(2, 1));
}

TEST(LogitProcessor, MissingAndShortInputsAreErrors) {
  const std::vector<float> logits(33);
  const std::vector<uint32_t> short_mask = {1};
  TokenHistory history;
  EXPECT_THAT(Refusal({}, logits, {.presence_penalty = 1}),
              HasSubstr("need the request's history"));
  EXPECT_THAT(Refusal({}, logits, {.min_tokens = 3}), HasSubstr("min_tokens 3"));
  EXPECT_THAT(Refusal({.grammar_mask = short_mask}, logits, {}),
              HasSubstr("has 1 words; 33 logits need 2"));
  EXPECT_THAT(Refusal({}, logits, {.bad_token_ids = {33}}), HasSubstr("outside 0 to 32"));
  EXPECT_THAT(Refusal({.eos_token = 33}, logits, {}), HasSubstr("end token 33"));
  history.Append(40);
  EXPECT_THAT(Refusal({.history = &history}, logits, {.presence_penalty = 1}),
              HasSubstr("token id 40 of the history"));
}

}  // namespace
}  // namespace deepinfer
