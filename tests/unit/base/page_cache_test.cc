// What load measurements rest on: which pages are cached, and where resident memory comes from.
#include "base/page_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/resident_memory.h"

namespace deepinfer {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(PageCacheTest, AFileJustWrittenIsCachedAndCanBeDropped) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "page_cache_test.bin";
  ASSERT_TRUE(WriteFileAtomically(path, std::string(3 * kMiB + 5, 'x')));
  EXPECT_EQ(CachedBytes(path).value(), 3 * kMiB + 5);
  EXPECT_TRUE(DropCachedPages(path));
  // A file system may keep them (a memory file system must); more than all it cannot.
  EXPECT_LE(CachedBytes(path).value(), 3 * kMiB + 5);
  std::filesystem::remove(path);
  EXPECT_FALSE(CachedBytes(path));
  EXPECT_FALSE(DropCachedPages(path));
}

TEST(PageCacheTest, ATemporaryFileHoldsItsContentsAndHasNoName) {
  const auto names = [] {
    std::vector<std::string> found;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("deepinfer-") && !entry.is_directory()) found.push_back(name);
    }
    std::ranges::sort(found);
    return found;
  };
  const auto before = names();
  std::vector<std::byte> contents(kMiB + 3);
  for (size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<std::byte>(i * 7);
  const auto file = MapTemporaryFile(contents);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(std::ranges::equal(file->bytes(), contents));
  EXPECT_EQ(names(), before);
}

TEST(ResidentMemoryTest, TellsHeapFromMappedFiles) {
  const auto before = ReadResidentMemory();
  ASSERT_TRUE(before) << before.error().message;
  // The kernel counts in batches, so the numbers may be off by some pages a thread.
  constexpr uint64_t kBytes = 24 * kMiB, kSlack = 4 * kMiB;
  const std::vector<std::byte> heap(kBytes, std::byte{1});
  const auto with_heap = ReadResidentMemory();
  EXPECT_GE(with_heap->anonymous + kSlack, before->anonymous + kBytes);
  EXPECT_LE(with_heap->file_backed, before->file_backed + kSlack);
  const auto file = MapTemporaryFile(heap);
  ASSERT_TRUE(file);
  EXPECT_TRUE(std::ranges::equal(file->bytes(), heap));
  const auto with_file = ReadResidentMemory();
  EXPECT_GE(with_file->file_backed + kSlack, with_heap->file_backed + kBytes);
  EXPECT_LE(with_file->anonymous, with_heap->anonymous + kSlack);
}

}  // namespace
}  // namespace deepinfer
