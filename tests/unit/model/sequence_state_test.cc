#include "model/v41/sequence_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/slab.h"

namespace deepinfer::model::v41 {
namespace {

// The release's cache dimensions (spec model-v41 sections 1.1 and 4).
ModelConfig ReleaseCaches() {
  ModelConfig config;
  config.num_layers = 40;
  config.head_dim = 512;
  config.index_head_dim = 128;
  config.sliding_window = 128;
  config.kv_source_layers = {2, 8, 14, 20};
  config.roles.resize(40);
  for (int layer = 2; layer < 40; ++layer) config.roles[layer].ratio = layer < 20 ? 2 : 1;
  for (const LayerRole& role : config.roles) config.compress_ratios.push_back(role.ratio);
  config.engram_layers = {1, 14};
  config.engram_max_ngram = 4;
  config.num_draft_stages = 3;
  config.draft_block_size = 5;
  return config;
}

// Header and Engram ids take a cache line each.
constexpr size_t kTails = 3 * 2 * 512 * 4;

TEST(SequenceState, AFreshSequenceHoldsOnlyItsFixedPart) {
  const SequenceState state(ReleaseCaches(), false);
  EXPECT_EQ(state.length(), 0);
  EXPECT_EQ(state.global_kv_bytes(), 0u);
  EXPECT_FALSE(state.with_draft());
  EXPECT_EQ(state.fixed_bytes(), 64u + 2703360u + kTails + 64u);
}

TEST(SequenceState, DraftStagesAddTheirRingsAndRoomForRollback) {
  const SequenceState state(ReleaseCaches(), true);
  EXPECT_TRUE(state.with_draft());
  EXPECT_EQ(state.draft_first_valid(), 0);
  EXPECT_EQ(state.fixed_bytes(), 64u + 2906112u + 43u * 5 * 528 + 16u + 3 * kTails + 64u);
}

TEST(SequenceState, AModelWithoutEngramKeepsNoHistory) {
  ModelConfig config = ReleaseCaches();
  config.engram_layers.clear();
  config.engram_max_ngram = 0;
  EXPECT_EQ(SequenceState(config, false).fixed_bytes(), 64u + 2703360u + kTails);
}

class PagedState : public testing::Test {
 protected:
  PagedState() {
    const CacheOptions options{.block_tokens = 64, .with_draft = true, .max_rollback = 5};
    layout_ = std::make_shared<const CacheLayout>(*CacheLayout::Create(ReleaseCaches(), options));
  }
  uint8_t* Slot(int64_t i) { return (*slots_)[i]; }

  std::shared_ptr<const CacheLayout> layout_;
  Result<Slab> slots_ = Slab::Create(2, 4 << 20);
};

TEST_F(PagedState, CapacityFollowsTheTableOfItsOwner) {
  ASSERT_LE(layout_->slot_bytes, 4 << 20);
  SequenceState state(layout_, Slot(0));
  EXPECT_FALSE(state.owns_blocks());
  EXPECT_EQ(state.block_capacity(), 0);
  std::vector<uint8_t> block(static_cast<size_t>(layout_->block_bytes));
  const std::vector<uint8_t*> table(3, block.data());
  state.ViewBlocks(table);
  EXPECT_EQ(state.block_capacity(), 192);
  EXPECT_EQ(state.global_kv_bytes(), 3u * 64 * 890);
  state.ViewBlocks(std::span(table).first(1));
  EXPECT_EQ(state.block_capacity(), 64);
}

TEST_F(PagedState, ASlotIsClearedWhateverItHeld) {
  std::memset(Slot(0), 0xee, static_cast<size_t>(layout_->slot_bytes));
  const SequenceState state(layout_, Slot(0));
  EXPECT_EQ(state.length(), 0);
  EXPECT_EQ(state.draft_first_valid(), 0);
}

TEST_F(PagedState, RollbackBeyondTheSequenceIsRefused) {
  SequenceState state(layout_, Slot(0));
  EXPECT_TRUE(state.Rollback(0));
  for (const int64_t length : {-1, 1}) {
    const Status status = state.Rollback(length);
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("outside [0, 0]"), std::string::npos);
  }
}

TEST_F(PagedState, SnapshotsOfOtherSizesAndLayoutsAreRefused) {
  SequenceState state(layout_, Slot(0));
  std::vector<uint8_t> snapshot(static_cast<size_t>(layout_->slot_bytes));
  EXPECT_FALSE(state.SaveSnapshot(std::span(snapshot).first(100)));
  ASSERT_TRUE(state.SaveSnapshot(snapshot));
  EXPECT_FALSE(state.RestoreSnapshot(std::span(snapshot).first(100)));

  // The same size, another model.
  ModelConfig config = ReleaseCaches();
  std::swap(config.kv_source_layers[2], config.kv_source_layers[3]);
  const auto other = CacheLayout::Create(config, layout_->options);
  ASSERT_TRUE(other);
  ASSERT_EQ(other->slot_bytes, layout_->slot_bytes);
  SequenceState stranger(std::make_shared<const CacheLayout>(*other), Slot(1));
  const Status status = stranger.RestoreSnapshot(snapshot);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("layout"), std::string::npos) << status.error().message;
  EXPECT_TRUE(state.RestoreSnapshot(snapshot));
}

}  // namespace
}  // namespace deepinfer::model::v41
