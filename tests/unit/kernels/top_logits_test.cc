// The head's largest logits are those of the whole product, in their order.
#include <bit>
#include <limits>
#include <numeric>
#include <tuple>

#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

struct Top {
  std::vector<int32_t> ids;
  std::vector<uint32_t> logits;
  bool operator==(const Top&) const = default;
};

std::vector<uint32_t> Bits(const std::vector<float>& x) {
  std::vector<uint32_t> out;
  for (const float v : x) out.push_back(std::bit_cast<uint32_t>(v));
  return out;
}

Top FindTop(ThreadPool& pool, const RowsView& x, const Bf16Matrix& w, int64_t topk) {
  std::vector<int32_t> ids(x.rows * topk, -1);
  std::vector<float> logits(x.rows * topk);
  Kernels().top_logits(pool,
                       {.x = x, .w = w, .topk = topk, .ids = ids.data(), .logits = logits.data()});
  return {ids, Bits(logits)};
}

// By the letter: all logits of the same table, sorted.
Top Expected(const RowsView& x, const Bf16Matrix& w, int64_t topk) {
  ThreadPool pool(1);
  std::vector<float> all(x.rows * w.rows);
  Kernels().Multiply(pool, MakeGemm(x, w, all.data(), w.rows));
  Top out;
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* row = all.data() + r * w.rows;
    std::vector<int32_t> order(w.rows);
    std::iota(order.begin(), order.end(), 0);
    // Equal logits, and NaN, by id.
    std::sort(order.begin(), order.end(), [row](int32_t a, int32_t b) {
      const bool nan_a = std::isnan(row[a]), nan_b = std::isnan(row[b]);
      if (nan_a != nan_b) return nan_a;
      return nan_a || row[a] == row[b] ? a < b : row[a] > row[b];
    });
    for (int64_t k = 0; k < topk; ++k) {
      out.ids.push_back(order[k]);
      out.logits.push_back(std::bit_cast<uint32_t>(row[order[k]]));
    }
  }
  return out;
}

TEST(TopLogits, AreTheLargestOfTheProductForAnyShape) {
  Random random(1);
  ThreadPool one(1), three(3);
  for (const auto& [rows, vocabulary, cols] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 64, 5}, {1, 1000, 96}, {3, 257, 33}, {7, 4097, 64}, {130, 700, 48}}) {
    const int64_t stride = cols + 3;
    const std::vector<bf16> x = random.Bf16s(rows * stride), w = random.Bf16s(vocabulary * cols);
    const RowsView view{x.data(), rows, cols, stride};
    const Bf16Matrix matrix{w.data(), vocabulary, cols};
    for (const int64_t topk : {1, 2, 20, 64}) {
      const Top want = Expected(view, matrix, topk);
      ASSERT_EQ(FindTop(one, view, matrix, topk), want) << vocabulary << " " << topk;
      ASSERT_EQ(FindTop(three, view, matrix, topk), want) << vocabulary << " " << topk;
    }
  }
}

TEST(TopLogits, TiesGoToTheLowestIdWhicheverThreadFindsThem) {
  Random random(2);
  ThreadPool pool(4);
  constexpr int64_t kVocabulary = 3000, kCols = 3;
  const std::vector<bf16> x(kCols, ToBf16(1));
  std::vector<bf16> w(kVocabulary * kCols);
  for (bf16& v : w) v = ToBf16(static_cast<float>(random.Below(-1, 2)));
  const RowsView view{x.data(), 1, kCols, kCols};
  const Bf16Matrix matrix{w.data(), kVocabulary, kCols};
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(FindTop(pool, view, matrix, 64), Expected(view, matrix, 64));
  }
}

TEST(TopLogits, NanStandsBeforeInfinity) {
  ThreadPool pool(2);
  constexpr int64_t kVocabulary = 900, kCols = 2;
  const std::vector<bf16> x = {ToBf16(1), ToBf16(1)};
  std::vector<bf16> w(kVocabulary * kCols);
  const float infinity = std::numeric_limits<float>::infinity();
  w[2 * 5] = ToBf16(-infinity);
  w[2 * 100] = ToBf16(infinity);
  w[2 * 700] = ToBf16(infinity), w[2 * 700 + 1] = ToBf16(-infinity);
  w[2 * 800 + 1] = ToBf16(std::numeric_limits<float>::quiet_NaN());
  const Top got = FindTop(pool, {x.data(), 1, kCols, kCols}, {w.data(), kVocabulary, kCols}, 4);
  EXPECT_EQ(got.ids, (std::vector<int32_t>{700, 800, 100, 0}));
}

}  // namespace
}  // namespace deepinfer::kernels
