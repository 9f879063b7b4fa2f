#include "base/numa_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace deepinfer {
namespace {

constexpr size_t kBytes = size_t{1} << 20;

class NumaMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* mapped =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    memory_ = static_cast<std::byte*>(mapped);
  }
  void TearDown() override { ::munmap(memory_, kBytes); }

  // Every byte can be written and keeps its value.
  void ExpectUsable() {
    for (size_t i = 0; i < kBytes; i += 511) memory_[i] = static_cast<std::byte>(i);
    for (size_t i = 0; i < kBytes; i += 511) ASSERT_EQ(memory_[i], static_cast<std::byte>(i)) << i;
  }

  std::byte* memory_ = nullptr;
};

TEST_F(NumaMemoryTest, InterleavingIsHarmlessOnThisMachine) {
  const Status status = InterleaveOverNodes(memory_, kBytes);
  EXPECT_TRUE(status || ProcessTopology().nodes.size() > 1);
  ExpectUsable();
}

TEST_F(NumaMemoryTest, PlacedPagesAreUsableAndTouchedOnesKeepTheirContents) {
  std::memset(memory_, 7, 100);
  const int node = ProcessTopology().nodes.front();
  const Status status = InterleaveOverNodes(memory_, kBytes, std::vector<int>{node, node});
  // A container may forbid placing memory.
  if (!status) {
    EXPECT_THAT(status.error().message, testing::HasSubstr("Operation not permitted"));
  }
  EXPECT_EQ(memory_[99], std::byte{7});
  ExpectUsable();
}

TEST_F(NumaMemoryTest, OnlyWholePagesAreAskedForAndNoPageIsNoError) {
  const std::vector<int> nodes = {0, 0};
  EXPECT_TRUE(InterleaveOverNodes(memory_ + 1, 100, nodes));
  EXPECT_TRUE(InterleaveOverNodes(memory_, 0, nodes));
}

TEST_F(NumaMemoryTest, ANodeThatDoesNotExistIsAnErrorThatNamesTheRange) {
  const Status status = InterleaveOverNodes(memory_, kBytes, std::vector<int>{1000, 1001});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::HasSubstr("interleave 1048576 bytes"));
  ExpectUsable();
}

}  // namespace
}  // namespace deepinfer
