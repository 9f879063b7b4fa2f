#include "model/v41/cache_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

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

TEST(CacheLayout, RecordsHaveTheReleasesSizes) {
  const ModelConfig config = ReleaseCaches();
  EXPECT_EQ(config.kv_entry_bytes(), 288);
  EXPECT_EQ(config.index_entry_bytes(), 68);
  EXPECT_EQ(config.window_entry_bytes(), 528);
  EXPECT_EQ(config.kv_bytes_per_token(), 890.0);
}

// 890 B a token and no padding at the block sizes in use.
TEST(CacheLayout, ABlockTakesTheFormulasBytes) {
  for (const int64_t tokens : {64, 128, 256, 512}) {
    const auto layout = CacheLayout::Create(ReleaseCaches(), {.block_tokens = tokens});
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->block_bytes, 890 * tokens);
  }
  // Elsewhere each of the eight parts is rounded up to a cache line.
  const auto small = CacheLayout::Create(ReleaseCaches(), {.block_tokens = 6});
  ASSERT_TRUE(small);
  EXPECT_GT(small->block_bytes, 890 * 6);
  EXPECT_LE(small->block_bytes, 890 * 6 + 8 * 63);
}

using Range = std::pair<int64_t, int64_t>;  // first byte, end

void ExpectApart(std::vector<Range> ranges, int64_t bytes) {
  std::sort(ranges.begin(), ranges.end());
  int64_t end = 0;
  for (const auto& [first, last] : ranges) {
    EXPECT_GE(first, end);
    EXPECT_EQ(first % kCacheAlignment, 0);
    end = last;
  }
  EXPECT_LE(end, bytes);
  EXPECT_LT(bytes - end, kCacheAlignment);
  EXPECT_EQ(bytes % kCacheAlignment, 0);
}

TEST(CacheLayout, PartsOfABlockDoNotOverlap) {
  for (const int64_t tokens : {2, 6, 64, 250}) {
    const auto layout = CacheLayout::Create(ReleaseCaches(), {.block_tokens = tokens});
    ASSERT_TRUE(layout);
    std::vector<Range> ranges;
    for (const KvSourceLayout& source : layout->sources) {
      EXPECT_EQ(source.entries_per_block * source.ratio, tokens);
      ranges.push_back({source.kv_offset, source.kv_offset + source.entries_per_block * 288});
      ranges.push_back({source.index_offset, source.index_offset + source.entries_per_block * 68});
    }
    EXPECT_EQ(ranges.size(), 8u);
    ExpectApart(ranges, layout->block_bytes);
  }
}

TEST(CacheLayout, PartsOfASlotDoNotOverlapAndHoldARollback) {
  for (const int64_t rollback : {0, 1, 4, 5, 128}) {
    const auto layout =
        CacheLayout::Create(ReleaseCaches(), {.with_draft = true, .max_rollback = rollback});
    ASSERT_TRUE(layout);
    EXPECT_GE(layout->ring_slots, 128 + rollback);
    EXPECT_GE(layout->history_slots, 3 + rollback);
    // The open group of every length down to that of the rollback.
    EXPECT_GE(2 * layout->tail_slots, rollback + 1);
    std::vector<Range> ranges = {
        {0, static_cast<int64_t>(sizeof(SlotHeader))},
        {layout->rings_offset, layout->rings_offset + 43 * layout->ring_bytes()},
        {layout->history_offset, layout->history_offset + layout->history_slots * 4}};
    for (const KvSourceLayout& source : layout->sources) {
      if (source.ratio != 2) continue;
      ranges.push_back({source.tail_offset, source.tail_offset + layout->tail_slots * 2 * 512 * 4});
    }
    ExpectApart(ranges, layout->slot_bytes);
  }
}

TEST(CacheLayout, TagsTellLayoutsOfSlotsApart) {
  const ModelConfig config = ReleaseCaches();
  ModelConfig narrower = config;
  narrower.head_dim = 256;
  std::vector<uint64_t> tags;
  for (const CacheOptions& options :
       {CacheOptions{}, CacheOptions{.with_draft = true}, CacheOptions{.max_rollback = 1},
        CacheOptions{.max_rollback = 2}}) {
    tags.push_back(CacheLayout::Create(config, options)->slot_tag);
  }
  tags.push_back(CacheLayout::Create(narrower, {})->slot_tag);
  std::sort(tags.begin(), tags.end());
  EXPECT_EQ(std::adjacent_find(tags.begin(), tags.end()), tags.end());
  // A slot does not depend on the size of blocks.
  EXPECT_EQ(CacheLayout::Create(config, {.block_tokens = 64})->slot_tag,
            CacheLayout::Create(config, {.block_tokens = 128})->slot_tag);
}

TEST(CacheLayout, OptionsOutsideTheirRangeAreRefused) {
  for (const int64_t tokens : {-2, 0, 1, 63, (1 << 20) + 2}) {
    const auto layout = CacheLayout::Create(ReleaseCaches(), {.block_tokens = tokens});
    ASSERT_FALSE(layout) << tokens;
    EXPECT_NE(layout.error().message.find("block_tokens"), std::string::npos);
  }
  for (const int64_t rollback : {-1, 129}) {
    const auto layout = CacheLayout::Create(ReleaseCaches(), {.max_rollback = rollback});
    ASSERT_FALSE(layout) << rollback;
    EXPECT_NE(layout.error().message.find("max_rollback"), std::string::npos);
  }
}

}  // namespace
}  // namespace deepinfer::model::v41
