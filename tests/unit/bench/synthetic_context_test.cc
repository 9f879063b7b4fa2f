// A synthetic context has the size of a real one and can be decoded from.
#include "model/v41/synthetic_context.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/runtime.h"

namespace deepinfer::model::v41 {
namespace {

class SyntheticContextTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto runtime = Runtime::Load(std::string(DEEPINFER_SOURCE_DIR) + "/models/nano",
                                 {.check_weights = CheckWeights::kNone});
    ASSERT_TRUE(runtime) << runtime.error().message;
    runtime_ = *runtime;
  }
  static void TearDownTestSuite() { runtime_.reset(); }

  static std::vector<float> Forward(SequenceState& state, const std::vector<int32_t>& tokens) {
    ForwardContext context(2);
    const SequenceChunk chunk{.state = &state, .tokens = tokens, .logits_rows = 1};
    std::vector<float> logits;
    EXPECT_TRUE(runtime_->model().Forward(context, {&chunk, 1}, logits));
    return logits;
  }
  static std::unique_ptr<SequenceState> Synthetic(int64_t tokens, uint64_t seed) {
    auto state = runtime_->model().NewSequence();
    SyntheticContext::Extend(runtime_->config(), tokens, seed, *state);
    return state;
  }

  static std::shared_ptr<const Runtime> runtime_;
};
std::shared_ptr<const Runtime> SyntheticContextTest::runtime_;

TEST_F(SyntheticContextTest, TakesTheMemoryOfARealContext) {
  for (const int64_t tokens : {int64_t{1}, int64_t{300}, int64_t{601}}) {
    const auto real = runtime_->model().NewSequence();
    Forward(*real, std::vector<int32_t>(static_cast<size_t>(tokens), 7));
    const auto synthetic = Synthetic(tokens, 1);
    EXPECT_EQ(synthetic->length(), tokens);
    EXPECT_EQ(synthetic->global_kv_bytes(), real->global_kv_bytes()) << tokens;
    EXPECT_EQ(synthetic->fixed_bytes(), real->fixed_bytes()) << tokens;
  }
}

TEST_F(SyntheticContextTest, DecodesToFiniteLogitsThatTheSeedAloneDecides) {
  for (const int64_t tokens : {int64_t{0}, int64_t{5}, int64_t{777}}) {
    const std::vector<float> logits = Forward(*Synthetic(tokens, 1), {9});
    for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit)) << tokens;
    EXPECT_EQ(logits, Forward(*Synthetic(tokens, 1), {9})) << tokens;
    if (tokens > 0) {
      EXPECT_NE(logits, Forward(*Synthetic(tokens, 2), {9})) << tokens;
    }
  }
}

TEST_F(SyntheticContextTest, ExtendsAContextThatIsThere) {
  const auto state = runtime_->model().NewSequence();
  Forward(*state, {1, 2, 3});
  SyntheticContext::Extend(runtime_->config(), 400, 1, *state);
  EXPECT_EQ(state->length(), 403);
  for (const float logit : Forward(*state, {9})) ASSERT_TRUE(std::isfinite(logit));
}

}  // namespace
}  // namespace deepinfer::model::v41
