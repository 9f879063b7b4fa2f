#include "sampling/random_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace deepinfer {
namespace {

TEST(RandomStream, PhiloxGivesThePublishedVectors) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, GumbelAgreesWithTheLibraryAndStaysFiniteAtBothEnds) {
  for (int i = 1; i < 4000; ++i) {
    const uint64_t bits = static_cast<uint64_t>(i) * (std::numeric_limits<uint64_t>::max() / 4000);
    const double u = (static_cast<double>(bits) + 0.5) * 0x1p-64;
    EXPECT_NEAR(GumbelFromBits(bits), -std::log(-std::log1p(-u)), 1e-12) << bits;
  }
  EXPECT_NEAR(GumbelFromBits(0), 65 * std::log(2.0), 1e-12);
  EXPECT_NEAR(GumbelFromBits(std::numeric_limits<uint64_t>::max()), -std::log(65 * std::log(2.0)),
              1e-12);
}

TEST(RandomStream, EverySeedPositionAndTokenHasItsOwnBits) {
  std::set<uint64_t> seen;
  int count = 0;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    for (int64_t position : {int64_t{0}, int64_t{1}, int64_t{1} << 33}) {
      for (int32_t token : {0, 1, 2, 3, 129279}) {
        seen.insert(RandomStream(seed, position).Bits(token));
        ++count;
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(count));
  EXPECT_EQ(RandomStream(7, 3).Bits(11), RandomStream(7, 3).Bits(11));
}

TEST(RandomStream, StreamsOfOnePositionShareNoNumber) {
  std::set<uint64_t> seen;
  for (const Stream stream :
       {Stream::kTarget, Stream::kDraft, Stream::kAccept, Stream::kResidual}) {
    for (int32_t token = 0; token < 100; ++token) {
      seen.insert(RandomStream(1, 2, stream).Bits(token));
    }
  }
  EXPECT_EQ(seen.size(), 400u);
  EXPECT_EQ(RandomStream(1, 2).Bits(3), RandomStream(1, 2, Stream::kTarget).Bits(3));
}

TEST(RandomStream, UniformNumbersFillTheUnitInterval) {
  double sum = 0;
  for (int64_t position = 0; position < 10000; ++position) {
    const double u = RandomStream(3, position, Stream::kAccept).Uniform();
    ASSERT_GT(u, 0);
    ASSERT_LE(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 5 / std::sqrt(12.0 * 10000));
}

// Recorded values: a change of the hash would change the output of every request with n > 1.
TEST(ChildSeed, FirstChoiceKeepsTheSeedAndOthersNeverMeet) {
  EXPECT_EQ(ChildSeed(42, 0), 42u);
  EXPECT_EQ(ChildSeed(42, 1), 0xb42d8070c47f4b39u);
  EXPECT_EQ(ChildSeed(~uint64_t{0}, 127), 0x470f3c865bc3992fu);
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (int64_t choice = 0; choice < 128; ++choice) seen.insert(ChildSeed(seed, choice));
  }
  EXPECT_EQ(seen.size(), 12800u);
}

}  // namespace
}  // namespace deepinfer
