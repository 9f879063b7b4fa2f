#include "exec/prefill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

TEST(Prefill, CompactModeCountsFromThePromptsEnd) {
  const PrefillPolicy compact{PrefillMode::kCompact, 140, 64};
  EXPECT_EQ(DecoderStart(compact, 1000), 860);
  EXPECT_EQ(DecoderStart(compact, 140), 0);
  EXPECT_EQ(DecoderStart(compact, 3), 0);
}

TEST(Prefill, TheChunkSizeDoesNotMoveTheDecodersStart) {
  for (int64_t chunk : {1, 7, 4096}) {
    EXPECT_EQ(DecoderStart({PrefillMode::kCompact, 140, chunk}, 333), 193);
  }
}

TEST(Prefill, OffRunsEveryLayerOnEveryToken) {
  EXPECT_EQ(DecoderStart({PrefillMode::kOff, 140, 64}, 1000), 0);
}

TEST(Prefill, KeptTokensBelowTheWindowAreRefusedWithTheReason) {
  ModelConfig config;
  config.sliding_window = 128;
  EXPECT_TRUE(ValidatePrefillPolicy({PrefillMode::kCompact, 140, 64}, config));
  const Status status = ValidatePrefillPolicy({PrefillMode::kCompact, 139, 64}, config);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("prefill-keep-tokens 139 is below 140"));
  EXPECT_THAT(status.error().message, HasSubstr("sliding window of 128"));
  // The exact mode does not read it.
  EXPECT_TRUE(ValidatePrefillPolicy({PrefillMode::kOff, 1, 64}, config));
}

TEST(Prefill, AChunkOfNoTokensIsRefused) {
  EXPECT_FALSE(ValidatePrefillPolicy({PrefillMode::kOff, 140, 0}, ModelConfig{}));
}

}  // namespace
}  // namespace deepinfer
