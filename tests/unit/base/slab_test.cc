#include "base/slab.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace deepinfer {
namespace {

TEST(Slab, PiecesAreAlignedZeroAndApart) {
  const auto slab = Slab::Create(5, 100);
  ASSERT_TRUE(slab) << slab.error().message;
  EXPECT_EQ(slab->bytes(), 5 * 128);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*slab)[i]) % 64, 0u);
    EXPECT_EQ((*slab)[i][99], 0);
    std::memset((*slab)[i], static_cast<int>(i + 1), 100);
  }
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ((*slab)[i][0], i + 1);
    EXPECT_EQ((*slab)[i][99], i + 1);
  }
}

TEST(Slab, MovingKeepsThePieces) {
  auto made = Slab::Create(2, 64);
  ASSERT_TRUE(made);
  uint8_t* const piece = (*made)[1];
  piece[3] = 9;
  Slab moved = std::move(*made);
  EXPECT_EQ(moved[1], piece);
  auto other = Slab::Create(7, 64);
  ASSERT_TRUE(other);
  *other = std::move(moved);
  EXPECT_EQ(other->count(), 2);
  EXPECT_EQ((*other)[1][3], 9);
}

TEST(Slab, AnEmptySlabIsAllowedAndImpossibleOnesAreRefused) {
  const auto empty = Slab::Create(0, 10);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->bytes(), 0);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(Slab::Create(-1, 10));
  EXPECT_FALSE(Slab::Create(1, 0));
  EXPECT_FALSE(Slab::Create(1, kMost));
  EXPECT_FALSE(Slab::Create(kMost, 64));
  const auto huge = Slab::Create(int64_t{1} << 52, 64);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace deepinfer
