#include "model/v41/workspace.h"

#include <gtest/gtest.h>

namespace deepinfer::model::v41 {
namespace {

TEST(Workspace, HoldsNothingBeforeTheFirstRequest) { EXPECT_EQ(Workspace().bytes(), 0u); }

TEST(Workspace, SmallerRequestsReuseTheBufferAndItsContents) {
  Workspace workspace;
  float* const first = workspace.Get<float>(Slot::kQuery, 1000);
  for (int i = 0; i < 1000; ++i) first[i] = static_cast<float>(i);
  const size_t bytes = workspace.bytes();
  EXPECT_GE(bytes, 4000u);
  EXPECT_EQ(workspace.Get<float>(Slot::kQuery, 10), first);
  EXPECT_EQ(workspace.Get<float>(Slot::kQuery, 1000), first);
  EXPECT_EQ(first[999], 999.0f);
  EXPECT_EQ(workspace.bytes(), bytes);
}

TEST(Workspace, ANameDoesNotShareMemoryWithAnother) {
  Workspace workspace;
  int64_t* const a = workspace.Get<int64_t>(Slot::kKv, 8);
  int64_t* const b = workspace.Get<int64_t>(Slot::kQuery, 8);
  a[7] = 1;
  b[0] = 2;
  // Growing one name leaves the other where it was.
  workspace.Get<int64_t>(Slot::kQuery, 100000);
  EXPECT_EQ(workspace.Get<int64_t>(Slot::kKv, 8), a);
  EXPECT_EQ(a[7], 1);
}

TEST(Workspace, BuffersAreAlignedToCacheLinesAndCounted) {
  Workspace workspace;
  size_t expected = 0;
  for (const int64_t count : {1, 63, 64, 65}) {
    uint8_t* const p = workspace.Get<uint8_t>(Slot::kCandidateBlocks, count);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
    p[count - 1] = 1;
    expected = static_cast<size_t>(count + 63) / 64 * 64;
    EXPECT_EQ(workspace.bytes(), expected);
  }
}

}  // namespace
}  // namespace deepinfer::model::v41
