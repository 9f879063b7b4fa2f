// Hyper-connections against the release's.
#include "tests/golden/units/units_testing.h"

namespace deepinfer::golden {
namespace {

using kernels::MhcArgs;

constexpr float kTolerance = 1e-6f;

struct Coefficients {
  std::vector<float> pre, post, comb;
};

Coefficients RunMixes(MhcArgs args) {
  ThreadPool pool(2);
  Coefficients out{std::vector<float>(args.rows * args.streams),
                   std::vector<float>(args.rows * args.streams),
                   std::vector<float>(args.rows * args.streams * args.streams)};
  args.norm_eps = 1e-20f;
  args.hc_eps = 1e-6f;
  args.pre = out.pre.data();
  args.post = out.post.data();
  args.comb = out.comb.data();
  Kernels().mhc_mixes(pool, args);
  return out;
}

// The kernel computes mixes itself, so they are smuggled in: row r of h is a one in column r of 16,
// its RMS is 1/4, and fn[j][r] = mixes[r][j] / 4 then comes out as the mix, exactly.
void CheckSinkhorn(const std::string& name, int streams, int iterations) {
  SCOPED_TRACE(name);
  constexpr int64_t kWidth = 16;
  const std::vector<float> mixes = UnitF32(name + ".mixes"), scale = UnitF32(name + ".scale");
  const std::vector<float> base = UnitF32(name + ".base");
  const int64_t count = (2 + streams) * streams, rows = std::ssize(mixes) / count;
  ASSERT_LE(rows, kWidth);
  std::vector<bf16> h(rows * kWidth);
  std::vector<float> fn(count * kWidth);
  for (int64_t r = 0; r < rows; ++r) {
    h[r * kWidth + r] = ToBf16(1);
    for (int64_t j = 0; j < count; ++j) fn[j * kWidth + r] = mixes[r * count + j] / 4;
  }
  MhcArgs args;
  args.rows = rows;
  args.hidden = kWidth / streams;
  args.streams = streams;
  args.h = h.data();
  args.fn = {fn.data(), count, kWidth};
  args.scale = scale.data();
  args.base = base.data();
  args.sinkhorn_iterations = iterations;
  const Coefficients got = RunMixes(args);
  ExpectF32(got.pre, name + ".pre", kTolerance);
  ExpectF32(got.post, name + ".post", kTolerance);
  ExpectF32(got.comb, name + ".comb", kTolerance);
}

TEST(MhcUnits, SinkhornIsTheReleasesForEveryStreamAndIterationCount) {
  CheckSinkhorn("sinkhorn.hc4_it20", 4, 20);
  CheckSinkhorn("sinkhorn.hc4_it6", 4, 6);
  CheckSinkhorn("sinkhorn.hc2_it20", 2, 20);
}

TEST(MhcUnits, CoefficientsOfAStepAreTheReleases) {
  const std::vector<bf16> h = UnitBf16("mhc.h");
  const std::vector<float> fn = UnitF32("mhc.fn"), scale = UnitF32("mhc.scale");
  const std::vector<float> base = UnitF32("mhc.base");
  MhcArgs args;
  args.rows = 6;
  args.hidden = 64;
  args.streams = 4;
  args.h = h.data();
  args.fn = {fn.data(), 24, 256};
  args.scale = scale.data();
  args.base = base.data();
  args.sinkhorn_iterations = 20;
  const Coefficients got = RunMixes(args);
  ExpectF32(got.pre, "mhc.pre", kTolerance);
  ExpectF32(got.post, "mhc.post", kTolerance);
  ExpectF32(got.comb, "mhc.comb", kTolerance);
}

TEST(MhcUnits, CollapseAndExpandAreTheReleases) {
  ThreadPool pool(1);
  std::vector<bf16> h = UnitBf16("mhc.h");
  const std::vector<float> pre = UnitF32("mhc.pre"), post = UnitF32("mhc.post");
  const std::vector<float> comb = UnitF32("mhc.comb");
  std::vector<bf16> x(6 * 64);
  Kernels().mhc_collapse(pool, h.data(), pre.data(), 6, 4, 64, x.data());
  ExpectBf16(x, "mhc.collapsed");
  const std::vector<bf16> y = UnitBf16("mhc.y");
  Kernels().mhc_expand(pool, y.data(), post.data(), comb.data(), 6, 4, 64, h.data());
  ExpectBf16(h, "mhc.expanded");
}

}  // namespace
}  // namespace deepinfer::golden
