#include "exec/prefill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

TEST(Prefill, CompactModeCountsFromThePromptsEnd) {
  const PrefillPolicy compact{PrefillMode::kCompact, 140};
  EXPECT_EQ(DecoderStart(compact, 1000), 860);
  EXPECT_EQ(DecoderStart(compact, 140), 0);
  EXPECT_EQ(DecoderStart(compact, 3), 0);
}

TEST(Prefill, OffRunsEveryLayerOnEveryToken) {
  EXPECT_EQ(DecoderStart({PrefillMode::kOff, 140}, 1000), 0);
}

TEST(Prefill, KeptTokensBelowTheWindowAreRefusedWithTheReason) {
  ModelConfig config;
  config.sliding_window = 128;
  EXPECT_TRUE(ValidatePrefillPolicy({PrefillMode::kCompact, 140}, config));
  const Status status = ValidatePrefillPolicy({PrefillMode::kCompact, 139}, config);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("prefill-keep-tokens 139 is below 140"));
  EXPECT_THAT(status.error().message, HasSubstr("sliding window of 128"));
  // The exact mode does not read it.
  EXPECT_TRUE(ValidatePrefillPolicy({PrefillMode::kOff, 1}, config));
}

}  // namespace
}  // namespace deepinfer
