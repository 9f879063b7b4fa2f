// Pooling, index scores, candidate blocks and selection against naive implementations.
#include <limits>
#include <numeric>

#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

TEST(PoolPairs, ChannelsAreSoftmaxWeightedMeans) {
  Random random(1);
  ThreadPool pool(2);
  constexpr int64_t kGroups = 5, kDim = 37;
  std::vector<float> k = random.Floats(2 * kGroups * kDim);
  std::vector<float> g = random.Floats(2 * kGroups * kDim, 8);
  g[0] = 300, g[kDim] = -300;  // one weight underflows
  std::vector<bf16> out(kGroups * kDim);
  Kernels().pool_pairs(pool, k.data(), g.data(), kGroups, kDim, out.data());
  for (int64_t i = 0; i < kGroups * kDim; ++i) {
    const int64_t at = i / kDim * 2 * kDim + i % kDim;
    const double w0 = 1 / (1 + std::exp(static_cast<double>(g[at + kDim]) - g[at]));
    const double exact = w0 * k[at] + (1 - w0) * k[at + kDim];
    // exp within an ulp, then two quotients, products and a sum: at most 8 roundings.
    const double error = 8 * 0x1p-24 * (std::fabs(k[at]) + std::fabs(k[at + kDim]));
    ASSERT_NEAR(ToFloat(out[i]), exact, Bf16Tolerance(exact, error)) << i;
  }
}

TEST(ScaleBf16, EachValueIsRoundedOnce) {
  ThreadPool pool(2);
  Random random(2);
  std::vector<bf16> w = random.Bf16s(77);
  const std::vector<bf16> before = w;
  Kernels().scale_bf16(pool, w.data(), 77, 0.3f);
  for (size_t i = 0; i < w.size(); ++i) EXPECT_EQ(w[i], ToBf16(ToFloat(before[i]) * 0.3f));
}

TEST(IndexScores, HeadsAddRectifiedDotsInOrderAndInvisibleEntriesNeverWin) {
  Random random(3);
  ThreadPool pool(2);
  constexpr int64_t kDim = 64, kHeads = 3, kEntries = 71, kStride = 80, kPerBlock = 16;
  constexpr int64_t kBytes = kDim / 2 + kDim / 32;
  const std::vector<int64_t> visible = {0, 1, 31, 32, 33, 70, 71};
  const int64_t queries = std::ssize(visible);
  std::vector<bf16> x = random.Bf16s(kEntries * kDim), q = random.Bf16s(queries * kHeads * kDim);
  const std::vector<bf16> weights = random.Bf16s(queries * kHeads);
  std::vector<std::vector<uint8_t>> blocks(CeilDiv(kEntries, kPerBlock),
                                           std::vector<uint8_t>(kPerBlock * kBytes));
  std::vector<const uint8_t*> pointers;
  for (const auto& block : blocks) pointers.push_back(block.data());
  for (int64_t j = 0; j < kEntries; ++j) {
    uint8_t* out = blocks[j / kPerBlock].data() + j % kPerBlock * kBytes;
    Kernels().pack_index_key(pool, x.data() + j * kDim, 1, kDim, &out);
  }
  Kernels().round_q4u(pool, x.data(), kEntries, kDim);
  Kernels().round_q4u(pool, q.data(), queries * kHeads, kDim);
  std::vector<float> scores(queries * kStride, 12345.0f);
  IndexScoreArgs args;
  args.queries = queries;
  args.heads = kHeads;
  args.dim = kDim;
  args.q = q.data();
  args.head_weights = weights.data();
  args.keys = {pointers.data(), kPerBlock, kBytes};
  args.visible = visible.data();
  args.scores = scores.data();
  args.stride = kStride;
  Kernels().index_scores(pool, args);
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < kEntries; ++j) {
      float want = 0;
      double exact = 0, magnitude = 0;
      for (int64_t h = 0; h < kHeads; ++h) {
        std::vector<float> terms(kDim);
        double dot = 0, size = 0;
        for (int64_t d = 0; d < kDim; ++d) {
          terms[d] = ToFloat(q[(i * kHeads + h) * kDim + d]) * ToFloat(x[j * kDim + d]);
          dot += terms[d];
          size += std::fabs(terms[d]);
        }
        const float weight = ToFloat(weights[i * kHeads + h]);
        want += std::max(SumInLanes(terms), 0.0f) * weight;
        exact += std::max(dot, 0.0) * weight;
        magnitude += size * std::fabs(weight);
      }
      const float got = scores[i * kStride + j];
      if (j >= visible[i]) {
        ASSERT_EQ(got, kNever) << i << ", " << j;
      } else {
        if (HasReferenceSumOrder()) {
          ASSERT_EQ(got, want) << i << ", " << j;
        }
        ASSERT_NEAR(got, exact, (SumError(kDim) + kHeads * 0x1p-23) * magnitude);
      }
    }
  }
}

// Scores with few different values, so that most boundaries are ties.
std::vector<float> TiedScores(Random& random, int64_t count) {
  std::vector<float> scores(count);
  for (float& s : scores) s = static_cast<float>(random.Below(0, 4)) / 2;
  return scores;
}

// The `keep` best of those above -infinity, ties to the lowest number, ascending.
std::vector<int32_t> Best(const std::vector<float>& scores, int64_t keep) {
  std::vector<int32_t> order;
  for (size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] > kNever) order.push_back(static_cast<int32_t>(j));
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  order.resize(std::min<size_t>(order.size(), static_cast<size_t>(keep)));
  std::sort(order.begin(), order.end());
  return order;
}

TEST(Candidates, BestBlocksAndTheNewestAreKeptTiesToTheLowest) {
  Random random(4);
  ThreadPool pool(2);
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t entries = random.Below(1, 80), block = random.Below(1, 9);
    const int64_t keep = random.Below(1, 8), blocks = CeilDiv(entries, block);
    std::vector<float> scores = TiedScores(random, entries);
    for (float& s : scores) s = random.Below(0, 8) == 0 ? kNever : s;
    std::vector<int32_t> kept(keep + 1, -7);
    int64_t count = -7;
    CandidateArgs args;
    args.queries = 1;
    args.scores = scores.data();
    args.visible = &entries;
    args.stride = entries;
    args.block_size = block;
    args.top_blocks = keep;
    args.blocks = kept.data();
    args.block_count = &count;
    Kernels().candidates(pool, args);
    std::vector<float> best(blocks, kNever);
    for (int64_t j = 0; j < entries; ++j) best[j / block] = std::max(best[j / block], scores[j]);
    best.back() = std::numeric_limits<float>::infinity();
    const std::vector<int32_t> want = Best(best, keep);
    ASSERT_EQ(count, std::ssize(want)) << "trial " << trial;
    EXPECT_EQ(kept.back(), -7) << "written beyond the list";
    kept.resize(count);
    ASSERT_EQ(kept, want) << "trial " << trial;
  }
}

TEST(Candidates, AQueryThatSeesNothingKeepsNothing) {
  ThreadPool pool(1);
  const int64_t visible = 0;
  int32_t blocks[2] = {};
  int64_t count = 7;
  CandidateArgs args;
  args.queries = 1;
  args.visible = &visible;
  args.block_size = 8;
  args.top_blocks = 2;
  args.blocks = blocks;
  args.block_count = &count;
  Kernels().candidates(pool, args);
  EXPECT_EQ(count, 0);
}

TEST(Select, BestVisibleAscendingTiesToTheLowest) {
  Random random(5);
  ThreadPool pool(2);
  for (int trial = 0; trial < 200; ++trial) {
    // Long rows are selected from in several steps.
    const int64_t stride = random.Below(1, trial % 4 == 0 ? 5000 : 90);
    const int64_t visible = random.Below(0, stride + 1), topk = random.Below(1, 40);
    std::vector<float> scores = trial % 8 == 0 ? random.Floats(stride) : TiedScores(random, stride);
    for (float& s : scores) s = random.Below(0, 8) == 0 ? kNever : s;
    const auto seen = scores.begin() + visible;
    std::vector<int32_t> selected(topk, -7), want = Best({scores.begin(), seen}, topk);
    int64_t count = -7;
    SelectArgs args;
    args.queries = 1;
    args.scores = scores.data();
    args.visible = &visible;
    args.stride = stride;
    args.topk = topk;
    args.selected = selected.data();
    args.selected_count = &count;
    Kernels().select(pool, args);
    ASSERT_EQ(count, std::ssize(want));
    want.resize(topk, -1);
    ASSERT_EQ(selected, want) << "trial " << trial;
  }
}

// Rising scores are the worst order for whoever keeps a running best; equal ones the best.
TEST(Select, AnyOrderOfScoresGivesTheBest) {
  ThreadPool pool(1);
  constexpr int64_t kEntries = 20000, kTopk = 100;
  for (const int step : {-1, 0, 1}) {
    std::vector<float> scores(kEntries);
    for (int64_t j = 0; j < kEntries; ++j) scores[j] = static_cast<float>(step * j);
    std::vector<int32_t> selected(kTopk);
    int64_t count = 0;
    SelectArgs args;
    args.queries = 1;
    args.scores = scores.data();
    args.visible = &kEntries;
    args.stride = kEntries;
    args.topk = kTopk;
    args.selected = selected.data();
    args.selected_count = &count;
    Kernels().select(pool, args);
    ASSERT_EQ(count, kTopk);
    for (int64_t k = 0; k < kTopk; ++k) {
      ASSERT_EQ(selected[k], step > 0 ? kEntries - kTopk + k : k) << "step " << step;
    }
  }
}

// Scoring and selecting inside candidate blocks is scoring everything and striking out the rest.
TEST(Candidates, RestrictScoresAndSelectionToTheirBlocks) {
  Random random(6);
  ThreadPool pool(2);
  constexpr int64_t kDim = 64, kHeads = 3, kEntries = 300, kBytes = kDim / 2 + kDim / 32;
  constexpr int64_t kBlock = 8, kTop = 12, kTopk = 20, kStride = kTop * kBlock;
  const std::vector<int64_t> visible = {0, 1, 5, 8, 77, 96, 97, 155, 299, 300};
  const int64_t queries = std::ssize(visible);
  std::vector<uint8_t> records(kEntries * kBytes);
  const std::vector<bf16> x = random.Bf16s(kEntries * kDim);
  std::vector<uint8_t*> out;
  for (int64_t j = 0; j < kEntries; ++j) out.push_back(records.data() + j * kBytes);
  Kernels().pack_index_key(pool, x.data(), kEntries, kDim, out.data());
  std::vector<bf16> q = random.Bf16s(queries * kHeads * kDim);
  Kernels().round_q4u(pool, q.data(), queries * kHeads, kDim);
  const std::vector<bf16> weights = random.Bf16s(queries * kHeads);
  const uint8_t* block = records.data();
  std::vector<float> all(queries * kEntries), restricted(queries * kStride);
  IndexScoreArgs scoring;
  scoring.queries = queries;
  scoring.heads = kHeads;
  scoring.dim = kDim;
  scoring.q = q.data();
  scoring.head_weights = weights.data();
  scoring.keys = {&block, kEntries, kBytes};
  scoring.visible = visible.data();
  scoring.scores = all.data();
  scoring.stride = kEntries;
  Kernels().index_scores(pool, scoring);

  std::vector<int32_t> blocks(queries * kTop);
  std::vector<int64_t> counts(queries);
  CandidateArgs candidates;
  candidates.queries = queries;
  candidates.scores = all.data();
  candidates.visible = visible.data();
  candidates.stride = kEntries;
  candidates.block_size = kBlock;
  candidates.top_blocks = kTop;
  candidates.blocks = blocks.data();
  candidates.block_count = counts.data();
  Kernels().candidates(pool, candidates);

  scoring.candidates = {blocks.data(), counts.data(), kTop, kBlock};
  scoring.scores = restricted.data();
  scoring.stride = kStride;
  Kernels().index_scores(pool, scoring);
  std::vector<int32_t> selected(queries * kTopk);
  std::vector<int64_t> selected_counts(queries);
  SelectArgs select;
  select.queries = queries;
  select.scores = restricted.data();
  select.visible = visible.data();
  select.candidates = scoring.candidates;
  select.stride = kStride;
  select.topk = kTopk;
  select.selected = selected.data();
  select.selected_count = selected_counts.data();
  Kernels().select(pool, select);

  for (int64_t i = 0; i < queries; ++i) {
    std::vector<float> struck(kEntries, kNever);
    for (int64_t c = 0; c < counts[i] * kBlock; ++c) {
      const int64_t entry = blocks[i * kTop + c / kBlock] * kBlock + c % kBlock;
      const float want = entry < visible[i] ? all[i * kEntries + entry] : kNever;
      ASSERT_EQ(restricted[i * kStride + c], want) << "query " << i << ", entry " << entry;
      if (entry < visible[i]) struck[entry] = want;
    }
    std::vector<int32_t> want = Best(struck, kTopk);
    ASSERT_EQ(selected_counts[i], std::ssize(want)) << "query " << i;
    want.resize(kTopk, -1);
    const auto first = selected.begin() + i * kTopk;
    EXPECT_EQ(std::vector(first, first + kTopk), want) << "query " << i;
  }
}

}  // namespace
}  // namespace deepinfer::kernels
