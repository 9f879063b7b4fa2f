#include "model/v41/sequence_state.h"

#include <gtest/gtest.h>

#include <cstring>

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
  return config;
}

TEST(SequenceState, RecordsHaveTheReleasesSizes) {
  const ModelConfig config = ReleaseCaches();
  EXPECT_EQ(config.kv_entry_bytes(), 288);
  EXPECT_EQ(config.index_entry_bytes(), 68);
  EXPECT_EQ(config.window_entry_bytes(), 528);
  EXPECT_EQ(config.kv_bytes_per_token(), 890.0);
}

TEST(SequenceState, AFreshSequenceHoldsOnlyItsFixedPart) {
  const SequenceState state(ReleaseCaches(), false);
  EXPECT_EQ(state.length(), 0);
  EXPECT_EQ(state.global_kv_bytes(), 0u);
  EXPECT_FALSE(state.with_draft());
  // Windows, the three ratio-2 tails of 2 x 512 fp32, three Engram ids.
  EXPECT_EQ(state.fixed_bytes(), 2703360u + 3 * 2 * 512 * 4 + 3 * 4);
}

TEST(SequenceState, DraftStagesAddTheirRings) {
  const SequenceState with(ReleaseCaches(), true), without(ReleaseCaches(), false);
  EXPECT_TRUE(with.with_draft());
  EXPECT_EQ(with.draft_first_valid(), 0);
  EXPECT_EQ(with.fixed_bytes() - without.fixed_bytes(), 2906112u - 2703360u);
}

TEST(SequenceState, AModelWithoutEngramKeepsNoHistory) {
  ModelConfig config = ReleaseCaches();
  config.engram_layers.clear();
  config.engram_max_ngram = 0;
  EXPECT_EQ(SequenceState(config, false).fixed_bytes(), 2703360u + 3 * 2 * 512 * 4);
}

TEST(EntryStore, MemoryFollowsTheEntriesBlockByBlock) {
  EntryStore store(288);
  EXPECT_EQ(store.allocated_bytes(), 0u);
  int64_t size = 0;
  for (const int64_t next : {0, 1, 255, 256, 257, 257, 1000, 5000}) {
    store.Grow(size = next);
    const int64_t blocks = (size + EntryStore::kEntriesPerBlock - 1) / EntryStore::kEntriesPerBlock;
    EXPECT_EQ(store.size(), size);
    EXPECT_EQ(store.allocated_bytes(),
              static_cast<size_t>(blocks * EntryStore::kEntriesPerBlock * 288))
        << size;
  }
}

// The release: 890 B a token, and less than a block over it for each store.
TEST(EntryStore, AHundredThousandTokensTakeTheFormulasBytes) {
  const ModelConfig config = ReleaseCaches();
  constexpr int64_t kTokens = 100001;
  double bytes = 0;
  size_t stores = 0;
  for (const int layer : config.kv_source_layers) {
    for (const int64_t entry_bytes : {config.kv_entry_bytes(), config.index_entry_bytes()}) {
      EntryStore store(entry_bytes);
      store.Grow(kTokens / config.roles[layer].ratio);
      bytes += static_cast<double>(store.allocated_bytes());
      ++stores;
    }
  }
  EXPECT_GE(bytes, 890.0 * (kTokens - 1));
  EXPECT_LT(bytes, 890.0 * kTokens + 4 * 256 * (288 + 68));
  EXPECT_EQ(stores, 8u);
}

TEST(EntryStore, EntriesDoNotMoveAndKeepTheirBytesWhenTheStoreGrows) {
  EntryStore store(68);
  store.Grow(300);
  std::vector<uint8_t*> before;
  for (int64_t i = 0; i < 300; ++i) {
    before.push_back(store.entry(i));
    std::memset(store.entry(i), static_cast<int>(i % 251), 68);
  }
  store.Grow(20000);
  for (int64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(store.entry(i), before[i]);
    ASSERT_EQ(store.entry(i)[0], i % 251);
    ASSERT_EQ(store.entry(i)[67], i % 251);
  }
}

TEST(EntryStore, BlockPointersReachTheSameEntries) {
  EntryStore store(68);
  store.Grow(700);
  for (const int64_t i : {0, 255, 256, 511, 699}) {
    EXPECT_EQ(store.blocks()[i / 256] + i % 256 * 68, store.entry(i));
  }
}

}  // namespace
}  // namespace deepinfer::model::v41
