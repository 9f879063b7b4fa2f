// Row kernels of the table under test give the bits of the reference: lengths that are no multiple
// of the lanes, one row and many, extreme values.
#include <bit>
#include <limits>

#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

const KernelTable& Reference() { return reference::Table(); }

// bf16 values of which one in eight is zero, tiny, huge or infinite.
std::vector<bf16> ExtremeBf16s(Random& random, int64_t count) {
  constexpr float kExtremes[] = {0.0f,
                                 -0.0f,
                                 1e-39f,
                                 -1e-30f,
                                 3e38f,
                                 -3e38f,
                                 1e18f,
                                 -1e18f,
                                 1.0f,
                                 -1.0f,
                                 std::numeric_limits<float>::infinity()};
  std::vector<bf16> out = random.Bf16s(count, 3);
  for (bf16& v : out) {
    if (random.Below(0, 8) == 0) v = ToBf16(kExtremes[random.Below(0, std::size(kExtremes))]);
  }
  return out;
}

// The same numbers with one pattern for every NaN, whose bits no contract fixes.
std::vector<bf16> Canonical(std::vector<bf16> x) {
  for (bf16& v : x) {
    if (std::isnan(ToFloat(v))) v.bits = 0x7fc0;
  }
  return x;
}

std::vector<uint32_t> CanonicalBits(const std::vector<float>& x) {
  std::vector<uint32_t> out;
  for (const float v : x) out.push_back(std::isnan(v) ? 0x7fc00000u : std::bit_cast<uint32_t>(v));
  return out;
}
std::vector<uint16_t> CanonicalBits(const std::vector<bf16>& x) { return BitsOf(Canonical(x)); }

class RowBits : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t rows_ = GetParam();
  Random random_{static_cast<uint64_t>(rows_)};
  ThreadPool pool_{2};
};

TEST_P(RowBits, SwiGluQ8IsActivationThenQuantisation) {
  for (const int64_t cols : {32, 96, 1056}) {
    const auto a = ExtremeBf16s(random_, rows_ * cols), b = ExtremeBf16s(random_, rows_ * cols);
    const std::vector<float> weight = random_.Floats(rows_);
    for (const float* w : {static_cast<const float*>(nullptr), weight.data()}) {
      std::vector<bf16> want(rows_ * cols), u(rows_ * cols);
      std::vector<uint8_t> want_codes(rows_ * cols), want_scales(rows_ * cols / 32);
      for (int64_t i = 0; i < rows_ * cols; ++i) {
        const float gate = std::min(ToFloat(a[i]), 10.0f);
        const float up = std::min(std::max(ToFloat(b[i]), -10.0f), 10.0f);
        want[i] = ToBf16((w == nullptr ? 1.0f : w[i / cols]) * (gate * Sigmoid(gate) * up));
      }
      Reference().quantize_q8(pool_, {want.data(), rows_, cols, cols},
                              {want_codes.data(), want_scales.data(), rows_, cols});
      for (bf16* out : {u.data(), static_cast<bf16*>(nullptr)}) {
        std::vector<uint8_t> codes(rows_ * cols), scales(rows_ * cols / 32);
        Kernels().swiglu_q8(pool_, {.rows = rows_,
                                    .cols = cols,
                                    .a = a.data(),
                                    .b = b.data(),
                                    .weight = w,
                                    .limit = 10.0f,
                                    .out = {codes.data(), scales.data(), rows_, cols},
                                    .u = out});
        ASSERT_EQ(scales, want_scales) << cols;
        ASSERT_EQ(codes, want_codes) << cols;
      }
      ASSERT_EQ(BitsOf(Canonical(u)), BitsOf(Canonical(want))) << cols;
    }
  }
}

TEST_P(RowBits, CombineAddsTheSlotsInOrderThenTheSharedRow) {
  constexpr int64_t kTopk = 6, kSlots = 40;
  for (const int64_t hidden : {1, 15, 16, 100, 520, 1030}) {
    const std::vector<bf16> y = random_.Bf16s(kSlots * hidden, 3);
    std::vector<bf16> shared = random_.Bf16s(rows_ * hidden, 3), want(rows_ * hidden);
    std::vector<int32_t> slots(rows_ * kTopk);
    for (int32_t& slot : slots) slot = static_cast<int32_t>(random_.Below(0, kSlots));
    for (int64_t i = 0; i < rows_ * hidden; ++i) {
      float acc = 0;
      for (int64_t k = 0; k < kTopk; ++k) {
        acc += ToFloat(y[slots[i / hidden * kTopk + k] * hidden + i % hidden]);
      }
      want[i] = ToBf16(acc + ToFloat(shared[i]));
    }
    // In place: the sum replaces the shared rows.
    Kernels().combine(pool_, {.rows = rows_,
                              .topk = kTopk,
                              .hidden = hidden,
                              .y = y.data(),
                              .slots = slots.data(),
                              .shared = shared.data(),
                              .out = shared.data()});
    ASSERT_EQ(BitsOf(shared), BitsOf(want)) << hidden;
  }
}

TEST_P(RowBits, RmsNorm) {
  for (const int64_t cols : {1, 15, 16, 33, 384, 1029}) {
    const int64_t stride = cols + 5;
    for (const bool extreme : {false, true}) {
      const auto x =
          extreme ? ExtremeBf16s(random_, rows_ * stride) : random_.Bf16s(rows_ * stride, 0.1);
      const std::vector<bf16> weight = random_.Bf16s(cols);
      std::vector<bf16> want(rows_ * cols), got(rows_ * cols);
      const RowsView view{x.data(), rows_, cols, stride};
      Reference().rms_norm(pool_, view, weight.data(), 1e-20f, want.data());
      Kernels().rms_norm(pool_, view, weight.data(), 1e-20f, got.data());
      ASSERT_EQ(CanonicalBits(got), CanonicalBits(want)) << cols;
    }
  }
}

TEST_P(RowBits, Rope) {
  for (const int64_t rope_dim : {2, 6, 32, 34, 64, 70}) {
    for (const int64_t heads : {1, 3}) {
      const int64_t dim = rope_dim + 10;
      std::vector<bf16> want = ExtremeBf16s(random_, rows_ * heads * dim), got = want;
      const std::vector<float> cos = random_.Floats(rows_ * rope_dim / 2);
      const std::vector<float> sin = random_.Floats(rows_ * rope_dim / 2);
      for (const bool inverse : {false, true}) {
        Reference().rope(pool_, want.data(), rows_, heads, dim, rope_dim, cos.data(), sin.data(),
                         inverse);
        Kernels().rope(pool_, got.data(), rows_, heads, dim, rope_dim, cos.data(), sin.data(),
                       inverse);
        ASSERT_EQ(CanonicalBits(got), CanonicalBits(want)) << rope_dim;
      }
    }
  }
}

struct Coefficients {
  std::vector<float> pre, post, comb;
};

Coefficients Mixes(const KernelTable& table, ThreadPool& pool, MhcArgs args) {
  const int64_t n = args.streams;
  Coefficients out{std::vector<float>(args.rows * n), std::vector<float>(args.rows * n),
                   std::vector<float>(args.rows * n * n)};
  args.pre = out.pre.data();
  args.post = out.post.data();
  args.comb = out.comb.data();
  table.mhc_mixes(pool, args);
  return out;
}

TEST_P(RowBits, MhcMixes) {
  for (const auto& [streams, hidden] :
       std::vector<std::pair<int, int64_t>>{{1, 5}, {2, 16}, {3, 37}, {4, 96}, {4, 701}, {8, 9}}) {
    const int64_t width = streams * hidden, mixes = (2 + streams) * streams;
    const std::vector<bf16> h = random_.Bf16s(rows_ * width, 3);
    const std::vector<float> fn = random_.Floats(mixes * width), base = random_.Floats(mixes);
    const float scale[] = {0.7f, 1.3f, 0.9f};
    for (const int iterations : {1, 20}) {
      MhcArgs args;
      args.rows = rows_;
      args.hidden = hidden;
      args.streams = streams;
      args.h = h.data();
      args.fn = {fn.data(), mixes, width};
      args.scale = scale;
      args.base = base.data();
      args.sinkhorn_iterations = iterations;
      args.norm_eps = 1e-20f;
      args.hc_eps = 1e-6f;
      const Coefficients want = Mixes(Reference(), pool_, args);
      const Coefficients got = Mixes(Kernels(), pool_, args);
      ASSERT_EQ(CanonicalBits(got.pre), CanonicalBits(want.pre)) << streams << " " << hidden;
      ASSERT_EQ(CanonicalBits(got.post), CanonicalBits(want.post)) << streams << " " << hidden;
      ASSERT_EQ(CanonicalBits(got.comb), CanonicalBits(want.comb)) << streams << " " << hidden;
    }
  }
}

TEST_P(RowBits, MhcCollapseExpandAndMean) {
  for (const int streams : {1, 2, 4, 8}) {
    for (const int64_t hidden : {1, 15, 16, 384, 1030}) {
      const std::vector<bf16> h = ExtremeBf16s(random_, rows_ * streams * hidden);
      const std::vector<bf16> y = ExtremeBf16s(random_, rows_ * hidden);
      const std::vector<float> pre = random_.Floats(rows_ * streams);
      const std::vector<float> post = random_.Floats(rows_ * streams);
      const std::vector<float> comb = random_.Floats(rows_ * streams * streams);
      const int64_t stride = hidden + 3;
      const auto run = [&](const KernelTable& table) {
        std::vector<bf16> x(rows_ * hidden), mixed = h, tap(rows_ * stride), all;
        table.mhc_collapse(pool_, h.data(), pre.data(), rows_, streams, hidden, x.data());
        table.mhc_expand(pool_, y.data(), post.data(), comb.data(), rows_, streams, hidden,
                         mixed.data());
        table.stream_mean(pool_, h.data(), rows_, streams, hidden, tap.data(), stride);
        for (const auto& part : {x, mixed, tap}) all.insert(all.end(), part.begin(), part.end());
        return CanonicalBits(all);
      };
      ASSERT_EQ(run(Kernels()), run(Reference())) << streams << " " << hidden;
    }
  }
}

struct Routing {
  std::vector<uint32_t> scores, weights;
  std::vector<int32_t> ids;
  bool operator==(const Routing&) const = default;
};

Routing Route(const KernelTable& table, ThreadPool& pool, GateArgs args) {
  std::vector<float> scores(args.rows * args.experts), weights(args.rows * args.topk);
  std::vector<int32_t> ids(args.rows * args.topk);
  args.scores = scores.data();
  args.weights = weights.data();
  args.ids = ids.data();
  table.gate(pool, args);
  return {CanonicalBits(scores), CanonicalBits(weights), ids};
}

TEST_P(RowBits, Gate) {
  for (const int experts : {3, 16, 24, 37, 384}) {
    std::vector<float> logits = random_.Floats(rows_ * experts, 4);
    std::vector<float> bias = random_.Floats(experts), image_bias = random_.Floats(experts);
    std::vector<uint8_t> is_image(rows_);
    for (uint8_t& v : is_image) v = static_cast<uint8_t>(random_.Below(0, 2));
    GateArgs args;
    args.rows = rows_;
    args.experts = experts;
    args.topk = std::min(experts, 6);
    args.logits = logits.data();
    args.bias = bias.data();
    args.image_bias = image_bias.data();
    args.is_image = is_image.data();
    args.route_scale = 1.5f;
    ASSERT_EQ(Route(Kernels(), pool_, args), Route(Reference(), pool_, args)) << experts;
    // Ties, experts without a chance, and numbers that are none.
    for (float& v : logits) v = static_cast<float>(random_.Below(-2, 2));
    for (float& v : bias) v = static_cast<float>(random_.Below(0, 2));
    ASSERT_EQ(Route(Kernels(), pool_, args), Route(Reference(), pool_, args)) << experts;
    for (size_t e = 1; e < bias.size(); ++e) bias[e] = -std::numeric_limits<float>::infinity();
    ASSERT_EQ(Route(Kernels(), pool_, args), Route(Reference(), pool_, args)) << experts;
    for (float& v : logits) {
      if (random_.Below(0, 5) == 0) v = std::numeric_limits<float>::quiet_NaN();
    }
    ASSERT_EQ(Route(Kernels(), pool_, args), Route(Reference(), pool_, args)) << experts;
  }
}

TEST_P(RowBits, EngramGather) {
  constexpr int64_t kTable = 300;
  for (const int64_t dim : {32, 64, 256}) {
    const std::vector<uint8_t> codes = random_.E4M3Codes(kTable * dim);
    const std::vector<uint8_t> scales = random_.E8M0Scales(kTable * dim / 32, 100);
    std::vector<int64_t> ids(rows_ * 24);
    for (int64_t& id : ids) id = random_.Below(0, kTable);
    const auto run = [&](const KernelTable& table) {
      std::vector<bf16> out(rows_ * 24 * dim);
      table.engram_gather(pool_, {.rows = rows_,
                                  .columns = 24,
                                  .dim = dim,
                                  .row_ids = ids.data(),
                                  .codes = codes.data(),
                                  .scales = scales.data(),
                                  .out = out.data()});
      return BitsOf(out);
    };
    ASSERT_EQ(run(Kernels()), run(Reference())) << dim;
  }
}

TEST_P(RowBits, EngramMix) {
  for (const int streams : {1, 4}) {
    for (const int64_t hidden : {1, 15, 16, 384, 701}) {
      for (const bool extreme : {false, true}) {
        const int64_t count = rows_ * (streams + 1) * hidden;
        const auto kv = extreme ? ExtremeBf16s(random_, count) : random_.Bf16s(count);
        const std::vector<bf16> before = random_.Bf16s(rows_ * streams * hidden, 0.3);
        const std::vector<bf16> q = random_.Bf16s(streams * hidden);
        const std::vector<bf16> k = random_.Bf16s(streams * hidden);
        std::vector<uint8_t> dead(rows_);
        for (uint8_t& v : dead) v = static_cast<uint8_t>(random_.Below(0, 4) == 0);
        const auto run = [&](const KernelTable& table) {
          std::vector<bf16> h = before;
          table.engram_mix(pool_, {.rows = rows_,
                                   .hidden = hidden,
                                   .streams = streams,
                                   .kv = kv.data(),
                                   .q_weight = q.data(),
                                   .k_weight = k.data(),
                                   .dead = dead.data(),
                                   .norm_eps = 1e-20f,
                                   .h = h.data()});
          return CanonicalBits(h);
        };
        ASSERT_EQ(run(Kernels()), run(Reference())) << streams << " " << hidden;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, RowBits, ::testing::Values(1, 2, 3, 17, 70));

}  // namespace
}  // namespace deepinfer::kernels
