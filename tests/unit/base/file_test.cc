#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

namespace deepinfer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "deepinfer-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  fs::path Write(const std::string& name, const std::string& contents) {
    std::ofstream(dir_ / name, std::ios::binary) << contents;
    return dir_ / name;
  }
  size_t FilesInFolder() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }

  fs::path dir_;
};

std::string Text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(FileTest, MapsTheWholeFile) {
  const fs::path path = Write("a", std::string("x\0y", 3));
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(Text(*file), std::string("x\0y", 3));
  EXPECT_EQ(file->path(), path);
}

// Longer than a read and no multiple of one, so that several threads take part.
TEST_F(FileTest, LoadingReadsTheSameBytesAndOutlivesTheFile) {
  std::string contents((size_t{8} << 20) * 3 + 4321, '\0');
  for (size_t i = 0; i < contents.size(); ++i)
    contents[i] = static_cast<char>(i * 2654435761 >> 13);
  const fs::path path = Write("weights", contents);
  uint64_t done = 0;
  auto file = MappedFile::Load(path, 3, [&](uint64_t bytes) { done = bytes; });
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(done, contents.size());
  fs::resize_file(path, 0);
  EXPECT_TRUE(Text(*file) == contents);
}

TEST_F(FileTest, LoadingRefusesWhatMappingRefuses) {
  EXPECT_FALSE(MappedFile::Load(dir_, 1));
  EXPECT_FALSE(MappedFile::Load(dir_ / "absent", 1));
  auto empty = MappedFile::Load(Write("empty", ""), 2);
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_TRUE(empty->bytes().empty());
}

TEST_F(FileTest, MovingKeepsTheBytesWhereTheyAre) {
  auto opened = MappedFile::Open(Write("a", "abc"));
  ASSERT_TRUE(opened);
  const std::byte* where = opened->bytes().data();
  MappedFile moved = std::move(*opened);
  EXPECT_EQ(moved.bytes().data(), where);
  MappedFile other;
  other = std::move(moved);
  EXPECT_EQ(Text(other), "abc");
}

TEST_F(FileTest, MappedBytesOutliveTheName) {
  const fs::path path = Write("a", "abc");
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file);
  fs::remove(path);
  EXPECT_EQ(Text(*file), "abc");
}

TEST_F(FileTest, AnEmptyFileIsAnEmptySpan) {
  auto file = MappedFile::Open(Write("empty", ""));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->bytes().empty());
  file->AdviseRandomAccess(file->bytes());
}

TEST_F(FileTest, AdviceOnAnyRangeLeavesTheBytesReadable) {
  auto file = MappedFile::Open(Write("a", std::string(20000, 'q')));
  ASSERT_TRUE(file);
  for (size_t begin : {0, 1, 4095, 4096, 12345, 19999}) {
    file->AdviseRandomAccess(file->bytes().subspan(begin));
  }
  EXPECT_EQ(Text(*file), std::string(20000, 'q'));
}

TEST_F(FileTest, RefusesWhatIsNoRegularFile) {
  const auto folder = MappedFile::Open(dir_);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(folder.error().message, HasSubstr("is a folder, not a regular file"));

  // A pipe without a writer must not block the open.
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  const auto pipe = ReadFile(dir_ / "pipe");
  ASSERT_FALSE(pipe);
  EXPECT_THAT(pipe.error().message, HasSubstr("is a special file"));
}

TEST_F(FileTest, MissingFilesAreNotFoundAndNamed) {
  for (const fs::path& path : {dir_ / "nope", dir_ / "nope" / "deeper"}) {
    const auto mapped = MappedFile::Open(path);
    ASSERT_FALSE(mapped);
    EXPECT_EQ(mapped.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(mapped.error().message, HasSubstr(path.string()));
    EXPECT_EQ(ReadFile(path).error().code, ErrorCode::kNotFound);
  }
}

TEST_F(FileTest, ReadsWholeFilesUpToTheLimit) {
  const fs::path path = Write("a", std::string(1000, 'z'));
  EXPECT_EQ(ReadFile(path).value(), std::string(1000, 'z'));
  EXPECT_EQ(ReadFile(path, 1000).value().size(), 1000u);
  const auto refused = ReadFile(path, 999);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has 1000 bytes; at most 999 are allowed"));
}

TEST_F(FileTest, WritesNewFilesAndReplacesOldOnes) {
  const fs::path path = dir_ / "out";
  ASSERT_TRUE(WriteFileAtomically(path, "first"));
  EXPECT_EQ(ReadFile(path).value(), "first");
  ASSERT_TRUE(WriteFileAtomically(path, std::string("sec\0nd", 6)));
  EXPECT_EQ(ReadFile(path).value(), std::string("sec\0nd", 6));
  ASSERT_TRUE(WriteFileAtomically(path, ""));
  EXPECT_EQ(ReadFile(path).value(), "");
  EXPECT_EQ(FilesInFolder(), 1u) << "a temporary file stayed behind";
}

TEST_F(FileTest, SpecialFilesAreNotReplaced) {
  const std::filesystem::path pipe = dir_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto written = WriteFileAtomically(pipe, "x");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("special file"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(FileTest, WritingIntoAMissingFolderIsAnError) {
  const auto written = WriteFileAtomically(dir_ / "nope" / "out", "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kNotFound);
  // The target, not the temporary file beside it.
  EXPECT_THAT(written.error().message, HasSubstr((dir_ / "nope" / "out").string() + ": "));
}

TEST_F(FileTest, WritingOntoAFolderIsAnErrorAndLeavesNoTemporary) {
  fs::create_directory(dir_ / "out");
  EXPECT_FALSE(WriteFileAtomically(dir_ / "out", "x"));
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(FileTest, AFailedWriteKeepsTheOldFileAndLeavesNoTemporary) {
  const fs::path path = Write("out", "old");
  // A file-size limit fails the write half way, as a full disk does.
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit{4096, old_limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto written = WriteFileAtomically(path, std::string(100000, 'n'));
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(written.error().message, HasSubstr(path.string()));
  EXPECT_EQ(ReadFile(path).value(), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
}

}  // namespace
}  // namespace deepinfer
