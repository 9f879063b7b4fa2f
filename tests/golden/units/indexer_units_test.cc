// Candidate blocks against the release's.
#include "tests/golden/units/units_testing.h"

namespace deepinfer::golden {
namespace {

constexpr int64_t kQueries = 6, kEntries = 40, kBlock = 4;

TEST(CandidateUnits, TheReleasesBlocksAreKept) {
  ThreadPool pool(2);
  const std::vector<float> scores = UnitF32("candidates.scores");
  const std::vector<int64_t> visible = Units().Raw<int64_t>("candidates.visible");
  std::vector<uint8_t> blocks(kQueries * kEntries / kBlock, 0xee);
  kernels::CandidateArgs args{.queries = kQueries, .scores = scores.data()};
  args.visible = visible.data();
  args.stride = kEntries;
  args.block_size = kBlock;
  args.top_blocks = 3;
  args.mask = blocks.data();
  args.mask_stride = kEntries / kBlock;
  Kernels().candidates(pool, args);
  std::vector<uint8_t> mask;
  for (const uint8_t kept : blocks) mask.insert(mask.end(), kBlock, kept);
  EXPECT_EQ(mask, UnitBytes("candidates.mask"));
}

// With the mask of a query the selection is its best candidates; without, its best entries.
TEST(CandidateUnits, SelectionStaysInsideTheMask) {
  ThreadPool pool(1);
  const std::vector<uint8_t> entry_mask = UnitBytes("candidates.mask");
  const std::vector<int64_t> visible = Units().Raw<int64_t>("candidates.visible");
  std::vector<uint8_t> blocks;
  for (size_t i = 0; i < entry_mask.size(); i += kBlock) blocks.push_back(entry_mask[i]);
  std::vector<float> scores = UnitF32("candidates.scores");
  const std::vector<float> before = scores;
  std::vector<int32_t> selected(kQueries * kEntries);
  std::vector<int64_t> count(kQueries);
  kernels::SelectArgs args{.queries = kQueries, .scores = scores.data()};
  args.mask = blocks.data();
  args.mask_stride = kEntries / kBlock;
  args.mask_block_size = kBlock;
  args.visible = visible.data();
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
  EXPECT_NE(scores, before) << "masked entries must become -infinity";
}

}  // namespace
}  // namespace deepinfer::golden
