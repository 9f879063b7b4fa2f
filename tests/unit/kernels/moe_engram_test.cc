// Routing, activation, combination and Engram against double precision.
#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

struct Routing {
  std::vector<float> scores, weights;
  std::vector<int32_t> ids;
};

Routing Route(const std::vector<float>& logits, const std::vector<float>& bias, int topk,
              float route_scale = 1) {
  const int experts = static_cast<int>(bias.size());
  const int64_t rows = std::ssize(logits) / experts;
  ThreadPool pool(2);
  Routing out{std::vector<float>(logits.size()), std::vector<float>(rows * topk),
              std::vector<int32_t>(rows * topk)};
  GateArgs args;
  args.rows = rows;
  args.experts = experts;
  args.topk = topk;
  args.logits = logits.data();
  args.bias = bias.data();
  args.route_scale = route_scale;
  args.scores = out.scores.data();
  args.ids = out.ids.data();
  args.weights = out.weights.data();
  Kernels().gate(pool, args);
  return out;
}

TEST(Gate, BiasChoosesAndUnbiasedScoresWeigh) {
  Random random(1);
  const std::vector<float> logits = random.Floats(50 * 11, 4), bias = random.Floats(11, 0.5);
  const Routing got = Route(logits, bias, 4, 1.5f);
  for (int64_t r = 0; r < 50; ++r) {
    std::vector<int32_t> order(11);
    for (int e = 0; e < 11; ++e) {
      order[e] = e;
      const double exact = std::sqrt(std::log1p(std::exp(static_cast<double>(logits[r * 11 + e]))));
      ASSERT_NEAR(got.scores[r * 11 + e], exact, exact * 0x1p-22);
    }
    const float* s = got.scores.data() + r * 11;
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      const float score_a = s[a] + bias[a], score_b = s[b] + bias[b];
      return score_a != score_b ? score_a > score_b : a < b;
    });
    double sum = 0;
    for (int k = 0; k < 4; ++k) sum += s[order[k]];
    for (int k = 0; k < 4; ++k) {
      ASSERT_EQ(got.ids[r * 4 + k], order[k]);
      ASSERT_NEAR(got.weights[r * 4 + k], s[order[k]] / sum * 1.5, 1e-6);
    }
  }
}

TEST(Gate, TiesGoToTheLowestExpert) {
  EXPECT_EQ(Route({1, 1, 1, 1, 1}, {0, 0.5f, 0, 0.5f, 0}, 4).ids,
            (std::vector<int32_t>{1, 3, 0, 2}));
}

TEST(Gate, ScoresThatAllUnderflowStillGiveFiniteWeights) {
  const Routing got = Route({-700, -700, -700}, {0, 0, 0}, 2);
  EXPECT_EQ(got.ids, (std::vector<int32_t>{0, 1}));
  for (const float w : got.weights) EXPECT_TRUE(std::isfinite(w));
}

TEST(Gate, ImageRowsUseTheirBiasOnlyWhereOneIsGiven) {
  ThreadPool pool(1);
  const float logits[] = {0, 0, 0, 0}, bias[] = {1, 0}, image_bias[] = {0, 1};
  const uint8_t is_image[] = {0, 1};
  float scores[4], weights[2];
  int32_t ids[2];
  GateArgs args;
  args.rows = 2;
  args.experts = 2;
  args.topk = 1;
  args.logits = logits;
  args.bias = bias;
  args.is_image = is_image;
  args.scores = scores;
  args.ids = ids;
  args.weights = weights;
  Kernels().gate(pool, args);
  EXPECT_EQ(ids[1], 0);
  args.image_bias = image_bias;
  Kernels().gate(pool, args);
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(ids[1], 1);
}

TEST(SwiGlu, TheGateIsClampedAboveAndTheOtherBranchOnBothSides) {
  Random random(2);
  ThreadPool pool(2);
  constexpr int64_t kRows = 5, kCols = 96;
  std::vector<bf16> a = random.Bf16s(kRows * kCols, 4), b = random.Bf16s(kRows * kCols, 4);
  a[0] = ToBf16(-300);  // no lower clamp: silu goes to zero
  const std::vector<float> weight = random.Floats(kRows);
  for (const float* w : {static_cast<const float*>(nullptr), weight.data()}) {
    std::vector<bf16> u(a.size());
    std::vector<uint8_t> codes(a.size()), scales(a.size() / 32);
    Kernels().swiglu_q8(pool, {.rows = kRows,
                               .cols = kCols,
                               .a = a.data(),
                               .b = b.data(),
                               .weight = w,
                               .limit = 2.5f,
                               .out = {codes.data(), scales.data(), kRows, kCols},
                               .u = u.data()});
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      const double gate = std::min<double>(ToFloat(a[i]), 2.5);
      const double up = std::clamp<double>(ToFloat(b[i]), -2.5, 2.5);
      const double exact = (w == nullptr ? 1.0 : static_cast<double>(w[i / kCols])) * gate /
                           (1 + std::exp(-gate)) * up;
      ASSERT_NEAR(ToFloat(u[i]), exact,
                  Bf16Tolerance(exact, 10 * 0x1p-24 * std::fabs(exact) + 1e-35))
          << i;
    }
  }
}

TEST(EngramGather, RowsAreDecodedIntoTheirColumns) {
  Random random(5);
  ThreadPool pool(2);
  constexpr int64_t kRows = 4, kColumns = 3, kDim = 64, kTable = 50;
  const std::vector<uint8_t> codes = random.E4M3Codes(kTable * kDim);
  const std::vector<uint8_t> scales = random.E8M0Scales(kTable * kDim / 32);
  std::vector<int64_t> ids(kRows * kColumns);
  for (int64_t& id : ids) id = random.Below(0, kTable);
  ids[0] = 0, ids[1] = kTable - 1;
  std::vector<bf16> out(kRows * kColumns * kDim);
  EngramGatherArgs args;
  args.rows = kRows;
  args.columns = kColumns;
  args.dim = kDim;
  args.row_ids = ids.data();
  args.codes = codes.data();
  args.scales = scales.data();
  args.out = out.data();
  Kernels().engram_gather(pool, args);
  for (int64_t i = 0; i < std::ssize(out); ++i) {
    const int64_t at = ids[i / kDim] * kDim + i % kDim;
    ASSERT_EQ(ToFloat(out[i]), E4M3ToFloat(codes[at]) * E8M0ToFloat(scales[at / 32])) << i;
  }
}

TEST(EngramMix, StreamsGainTheirGatedValueAndDeadRowsStay) {
  Random random(6);
  ThreadPool pool(2);
  constexpr int64_t kRows = 5, kHidden = 37;
  constexpr int kStreams = 3;
  const std::vector<bf16> kv = random.Bf16s(kRows * (kStreams + 1) * kHidden);
  const std::vector<bf16> q_weight = random.Bf16s(kStreams * kHidden);
  const std::vector<bf16> k_weight = random.Bf16s(kStreams * kHidden);
  const std::vector<bf16> before = random.Bf16s(kRows * kStreams * kHidden, 0.3);
  const uint8_t dead[kRows] = {0, 1, 0, 0, 1};
  std::vector<bf16> h = before;
  EngramMixArgs args;
  args.rows = kRows;
  args.hidden = kHidden;
  args.streams = kStreams;
  args.kv = kv.data();
  args.q_weight = q_weight.data();
  args.k_weight = k_weight.data();
  args.dead = dead;
  args.norm_eps = 1e-20f;
  args.h = h.data();
  Kernels().engram_mix(pool, args);
  for (int64_t r = 0; r < kRows; ++r) {
    const bf16* value = kv.data() + (r * (kStreams + 1) + kStreams) * kHidden;
    for (int s = 0; s < kStreams; ++s) {
      const bf16* old = before.data() + (r * kStreams + s) * kHidden;
      const bf16* key = kv.data() + (r * (kStreams + 1) + s) * kHidden;
      double dot = 0, old_squares = 0, key_squares = 0;
      for (int64_t d = 0; d < kHidden; ++d) {
        dot += static_cast<double>(ToFloat(old[d])) * ToFloat(key[d]) *
               ToFloat(q_weight[s * kHidden + d]) * ToFloat(k_weight[s * kHidden + d]);
        old_squares += std::pow(ToFloat(old[d]), 2);
        key_squares += std::pow(ToFloat(key[d]), 2);
      }
      dot *= std::sqrt(kHidden / old_squares) * std::sqrt(kHidden / key_squares) /
             std::sqrt(static_cast<double>(kHidden));
      const double root = std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6)), dot);
      const double gate = dead[r] ? 0 : 1 / (1 + std::exp(-root));
      for (int64_t d = 0; d < kHidden; ++d) {
        const double exact = ToFloat(old[d]) + gate * ToFloat(value[d]);
        // The dot's error of some 1e-6 is enlarged by the root near zero, to 1e-3 at the floor's
        // 1e-6; these dots are larger than 1e-3.
        ASSERT_GT(std::fabs(dot), 1e-3);
        ASSERT_NEAR(ToFloat(h[(r * kStreams + s) * kHidden + d]), exact,
                    Bf16Tolerance(exact, 2e-5 * std::fabs(ToFloat(value[d])) + 1e-7));
      }
    }
  }
}

}  // namespace
}  // namespace deepinfer::kernels
