// Candidate blocks against the release's.
#include <algorithm>
#include <limits>

#include "tests/golden/units/units_testing.h"

namespace deepinfer::golden {
namespace {

constexpr int64_t kQueries = 6, kEntries = 40, kBlock = 4;

TEST(CandidateUnits, TheReleasesBlocksAreKept) {
  ThreadPool pool(2);
  const std::vector<float> scores = UnitF32("candidates.scores");
  const std::vector<int64_t> visible = Units().Raw<int64_t>("candidates.visible");
  constexpr int64_t kTop = 3;
  std::vector<int32_t> blocks(kQueries * kTop);
  std::vector<int64_t> count(kQueries);
  kernels::CandidateArgs args{.queries = kQueries, .scores = scores.data()};
  args.visible = visible.data();
  args.stride = kEntries;
  args.block_size = kBlock;
  args.top_blocks = kTop;
  args.blocks = blocks.data();
  args.block_count = count.data();
  Kernels().candidates(pool, args);
  std::vector<uint8_t> mask(kQueries * kEntries);
  for (int64_t i = 0; i < kQueries; ++i) {
    for (int64_t c = 0; c < count[i]; ++c) {
      const auto first = mask.begin() + i * kEntries + blocks[i * kTop + c] * kBlock;
      std::fill(first, first + kBlock, uint8_t{1});
    }
  }
  EXPECT_EQ(mask, UnitBytes("candidates.mask"));
}

// Every visible entry of the kept blocks is selected when the list is long enough.
TEST(CandidateUnits, SelectionStaysInsideTheBlocks) {
  ThreadPool pool(1);
  const std::vector<uint8_t> entry_mask = UnitBytes("candidates.mask");
  const std::vector<int64_t> visible = Units().Raw<int64_t>("candidates.visible");
  const std::vector<float> all = UnitF32("candidates.scores");
  std::vector<int32_t> blocks(kQueries * kEntries / kBlock);
  std::vector<int64_t> block_count(kQueries);
  std::vector<float> scores;
  for (int64_t i = 0; i < kQueries; ++i) {
    scores.resize((i + 1) * kEntries, -std::numeric_limits<float>::infinity());
    for (int64_t j = 0; j < kEntries; ++j) {
      if (entry_mask[i * kEntries + j] == 0) continue;
      if (j % kBlock == 0) {
        blocks[i * kEntries / kBlock + block_count[i]++] = static_cast<int32_t>(j / kBlock);
      }
      const int64_t column = (block_count[i] - 1) * kBlock + j % kBlock;
      if (j < visible[i]) scores[i * kEntries + column] = all[i * kEntries + j];
    }
  }
  std::vector<int32_t> selected(kQueries * kEntries);
  std::vector<int64_t> count(kQueries);
  kernels::SelectArgs args{.queries = kQueries, .scores = scores.data()};
  args.visible = visible.data();
  args.candidates = {blocks.data(), block_count.data(), kEntries / kBlock, kBlock};
  args.stride = kEntries;
  args.topk = kEntries;
  args.selected = selected.data();
  args.selected_count = count.data();
  Kernels().select(pool, args);
  for (int64_t i = 0; i < kQueries; ++i) {
    std::vector<int32_t> want;
    for (int64_t j = 0; j < visible[i]; ++j) {
      if (entry_mask[i * kEntries + j]) want.push_back(static_cast<int32_t>(j));
    }
    ASSERT_EQ(count[i], std::ssize(want));
    want.resize(kEntries, -1);
    EXPECT_EQ(std::vector(selected.begin() + i * kEntries, selected.begin() + (i + 1) * kEntries),
              want)
        << "query " << i;
  }
}

}  // namespace
}  // namespace deepinfer::golden
