#include "engine/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

class MemoryBudgetTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    runtime_ = Runtime::Load(DEEPINFER_SOURCE_DIR "/models/nano", {CheckWeights::kNone}).value();
  }
  static void TearDownTestSuite() { runtime_.reset(); }
  static model::v41::CacheLayout Layout() {
    return model::v41::CacheLayout::Create(runtime_->config(), {.block_tokens = 64}).value();
  }

  static inline std::shared_ptr<const Runtime> runtime_;
};

TEST_F(MemoryBudgetTest, TheTableAddsUpAndStaysBelowTheFraction) {
  for (const uint64_t available : {uint64_t{300} << 20, uint64_t{64} << 30}) {
    const MemoryDemand demand{.limits = {.memory_fraction = 0.5, .grammar_cache_bytes = 1 << 20},
                              .prefix_mode = cache::PrefixMode::kDeterministic,
                              .max_num_batched_tokens = 2048,
                              .available_bytes = available};
    const auto budget = PlanMemory(*runtime_, Layout(), demand);
    ASSERT_TRUE(budget) << budget.error().message;
    EXPECT_LE(budget->total_bytes(), available / 2);
    EXPECT_GE(budget->snapshot_count, 1);
    EXPECT_THAT(FormatMemory(*budget), HasSubstr("KV cache"));
    EXPECT_THAT(FormatMemory(*budget), HasSubstr("weights, mapped"));
  }
}

TEST_F(MemoryBudgetTest, ThereAreNoMoreBlocksThanFullSequencesNeed) {
  const MemoryDemand demand{.limits = {.max_model_len = 1000, .max_num_seqs = 3},
                            .max_num_batched_tokens = 256,
                            .available_bytes = uint64_t{64} << 30};
  const auto budget = PlanMemory(*runtime_, Layout(), demand);
  ASSERT_TRUE(budget) << budget.error().message;
  EXPECT_EQ(budget->block_count, 3 * 16);
  EXPECT_EQ(budget->max_model_len, 1000);
}

TEST_F(MemoryBudgetTest, TheWorkspacesBoundHoldsAndIsNoWildGuess) {
  const ModelConfig& config = runtime_->config();
  for (const int64_t rows : {512, 2048}) {
    model::v41::ForwardContext context(2);
    const auto state = runtime_->model().NewSequence();
    std::vector<int32_t> tokens(static_cast<size_t>(rows), 500);
    std::vector<float> logits;
    for (int i = 0; i < 2; ++i) {
      const model::v41::SequenceChunk chunk{
          .state = state.get(), .tokens = tokens, .logits_rows = 1};
      ASSERT_TRUE(runtime_->model().Forward(context, {&chunk, 1}, logits));
    }
    const uint64_t bound = WorkspaceBytes(config, rows, config.max_position_embeddings);
    EXPECT_LE(context.workspace_bytes(), bound) << rows;
    EXPECT_GE(2 * context.workspace_bytes(), bound) << rows;
  }
}

}  // namespace
}  // namespace deepinfer
