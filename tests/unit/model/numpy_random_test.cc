#include "model/v41/numpy_random.h"

#include <gtest/gtest.h>

#include <vector>

namespace deepinfer::model::v41 {
namespace {

// numpy turns 64 bits into a double by their upper 53.
double NextDouble(NumpyRandom& random) {
  return static_cast<double>(random.Next64() >> 11) * 0x1p-53;
}

TEST(NumpyRandom, DrawsWhatDefaultRngRandomDraws) {
  struct Case {
    uint64_t seed;
    std::vector<double> draws;
  };
  // numpy.random.default_rng(seed).random(), as numpy prints it.
  const Case cases[] = {
      {0, {0.63696169, 0.26978671, 0.04097352}},
      {42, {0.77395605, 0.43887844, 0.85859792, 0.69736803, 0.09417735}},
      {12345, {0.22733602, 0.31675834, 0.79736546}},
  };
  for (const Case& c : cases) {
    NumpyRandom random(c.seed);
    for (const double want : c.draws) EXPECT_NEAR(NextDouble(random), want, 6e-9) << c.seed;
  }
}

// Spec model-v41 section 2.4: the release's multipliers.
TEST(NumpyRandom, BoundedDrawsGiveTheReleasesMultipliers) {
  constexpr uint64_t kBound = 0x7fffffffffffffffULL / 99092 / 2;
  const auto draw = [](uint64_t layer) {
    NumpyRandom random(10007 * layer);
    std::vector<uint64_t> out;
    for (int k = 0; k < 4; ++k) out.push_back(random.Below(kBound) * 2 + 1);
    return out;
  };
  EXPECT_EQ(draw(1),
            (std::vector<uint64_t>{76632096046245, 4839876093313, 35959672319349, 73987337458391}));
  EXPECT_EQ(draw(14), (std::vector<uint64_t>{67716810739261, 51510806800915, 30921347202721,
                                             82619226485591}));
}

TEST(NumpyRandom, SeedsAboveThirtyTwoBitsCount) {
  EXPECT_NE(NumpyRandom(7).Next64(), NumpyRandom(7 + (uint64_t{1} << 32)).Next64());
}

// With a bound just above 2^63 nearly every second word is rejected: were rejection missing, the
// draws would follow the raw words one by one.
TEST(NumpyRandom, WordsThatWouldBiasTheDrawAreSkipped) {
  constexpr uint64_t kBound = (uint64_t{1} << 63) + 1;
  NumpyRandom random(3), raw(3);
  int skipped = 0;
  for (int i = 0; i < 200; ++i) {
    const uint64_t draw = random.Below(kBound);
    ASSERT_LT(draw, kBound);
    // word * bound / 2^64 is word / 2 rounded down, give or take one.
    for (uint64_t word = raw.Next64(); draw != word / 2 && draw != word / 2 + 1;
         word = raw.Next64()) {
      ASSERT_LT(++skipped, 1000);
    }
  }
  EXPECT_GT(skipped, 50);
}

}  // namespace
}  // namespace deepinfer::model::v41
