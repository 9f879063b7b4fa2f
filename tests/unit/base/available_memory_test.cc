#include "base/available_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace deepinfer {
namespace {

class AvailableMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    // Tests of this file run side by side.
    root_ = std::filesystem::path(::testing::TempDir()) /
            ("available_memory_" + std::to_string(::getpid()));
    std::filesystem::create_directories(root_ / "proc");
    std::filesystem::create_directories(root_ / "sys/fs/cgroup");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const char* file, const char* text) { std::ofstream(root_ / file) << text; }

  std::filesystem::path root_;
};

TEST_F(AvailableMemory, IsTheSmallerOfTheSystemsAndTheGroups) {
  Write("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable: 4000 kB\n");
  EXPECT_EQ(*AvailableMemoryBytes(root_), 4000u * 1024);
  Write("sys/fs/cgroup/memory.max", "max\n");
  Write("sys/fs/cgroup/memory.current", "100\n");
  EXPECT_EQ(*AvailableMemoryBytes(root_), 4000u * 1024);
  Write("sys/fs/cgroup/memory.max", "1000\n");
  EXPECT_EQ(*AvailableMemoryBytes(root_), 900u);
  Write("sys/fs/cgroup/memory.stat", "anon 20\ninactive_file 60\n");
  EXPECT_EQ(*AvailableMemoryBytes(root_), 960u);  // file pages give way
  Write("sys/fs/cgroup/memory.current", "5000\n");
  EXPECT_EQ(*AvailableMemoryBytes(root_), 0u);
}

TEST_F(AvailableMemory, ASystemThatDoesNotTellIsAnError) {
  EXPECT_FALSE(AvailableMemoryBytes(root_));
}

}  // namespace
}  // namespace deepinfer
