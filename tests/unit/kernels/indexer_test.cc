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
        ASSERT_EQ(got, want) << i << ", " << j;
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
    std::vector<uint8_t> mask(blocks + 2, 0xee), want(blocks + 2, 0);
    CandidateArgs args;
    args.queries = 1;
    args.scores = scores.data();
    args.visible = &entries;
    args.stride = entries;
    args.block_size = block;
    args.top_blocks = keep;
    args.mask = mask.data();
    args.mask_stride = blocks + 2;
    Kernels().candidates(pool, args);
    std::vector<float> best(blocks, kNever);
    for (int64_t j = 0; j < entries; ++j) best[j / block] = std::max(best[j / block], scores[j]);
    best.back() = std::numeric_limits<float>::infinity();
    for (const int32_t b : Best(best, keep)) want[b] = 1;
    ASSERT_EQ(mask, want) << "trial " << trial;
  }
}

TEST(Candidates, AQueryThatSeesNothingKeepsNothing) {
  ThreadPool pool(1);
  const int64_t visible = 0;
  uint8_t mask[2] = {7, 7};
  CandidateArgs args;
  args.queries = 1;
  args.visible = &visible;
  args.block_size = 8;
  args.top_blocks = 2;
  args.mask = mask;
  args.mask_stride = 2;
  Kernels().candidates(pool, args);
  EXPECT_EQ(mask[0] + mask[1], 0);
}

TEST(Select, BestVisibleCandidatesAscendingTiesToTheLowest) {
  Random random(5);
  ThreadPool pool(2);
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t stride = random.Below(1, 90), visible = random.Below(0, stride + 1);
    const int64_t topk = random.Below(1, 40), block = random.Below(1, 9);
    std::vector<float> scores = TiedScores(random, stride);
    for (int64_t j = visible; j < stride; ++j) scores[j] = kNever;
    std::vector<uint8_t> mask(CeilDiv(stride, block));
    for (uint8_t& m : mask) m = random.Below(0, 3) > 0;
    const bool masked = trial % 2 == 0;
    std::vector<float> masked_scores = scores;
    for (int64_t j = 0; masked && j < stride; ++j) {
      if (mask[j / block] == 0) masked_scores[j] = kNever;
    }
    std::vector<int32_t> selected(topk, -7), want = Best(masked_scores, topk);
    int64_t count = -7;
    SelectArgs args;
    args.queries = 1;
    args.scores = scores.data();
    args.mask = masked ? mask.data() : nullptr;
    args.mask_stride = std::ssize(mask);
    args.mask_block_size = block;
    args.visible = &visible;
    args.stride = stride;
    args.topk = topk;
    args.selected = selected.data();
    args.selected_count = &count;
    Kernels().select(pool, args);
    ASSERT_EQ(count, std::ssize(want));
    want.resize(topk, -1);
    ASSERT_EQ(selected, want) << "trial " << trial;
    ASSERT_EQ(scores, masked_scores) << "trial " << trial;
  }
}

}  // namespace
}  // namespace deepinfer::kernels
