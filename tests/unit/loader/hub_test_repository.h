// A hub repository served by HttpTestServer, and a scratch cache for it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "loader/digest.h"
#include "loader/download.h"
#include "tests/unit/loader/http_test_server.h"

namespace deepinfer {

inline const std::string kTestCommit = "0123456789abcdef0123456789abcdef01234567";

inline std::string HexDigest(DigestKind kind, const std::string& contents) {
  auto digest = Digest::Create(kind, contents.size());
  digest->Update(std::as_bytes(std::span(contents)));
  return digest->Finish();
}

// Bytes without a period that a cut could hide behind.
inline std::string TestBytes(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 12345;
  for (char& c : bytes) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24);
  }
  return bytes;
}

// A folder of this test alone, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "deepinfer-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct TestRepository {
  std::string id = "some-org/some-model";
  std::map<std::string, std::string> large;  // served as LFS files
  std::map<std::string, std::string> small;

  nlohmann::json Listing() const {
    nlohmann::json listing = {{"sha", kTestCommit}, {"siblings", nlohmann::json::array()}};
    for (const auto& [name, contents] : small) {
      listing["siblings"].push_back({{"rfilename", name},
                                     {"size", contents.size()},
                                     {"blobId", HexDigest(DigestKind::kGitBlob, contents)}});
    }
    for (const auto& [name, contents] : large) {
      const std::string sha256 = HexDigest(DigestKind::kSha256, contents);
      listing["siblings"].push_back({{"rfilename", name},
                                     {"size", contents.size()},
                                     {"blobId", std::string(40, 'a')},
                                     {"lfs", {{"sha256", sha256}, {"size", contents.size()}}}});
    }
    return listing;
  }

  static TestReply Slice(const TestRequest& request, const std::string& contents) {
    const std::string range = request.header("range");
    if (range.empty()) return {200, contents, {}};
    const size_t first = std::stoull(range.substr(std::string("bytes=").size()));
    if (first >= contents.size()) return {416, "", {}};
    return {206,
            contents.substr(first),
            {fmt::format("Content-Range: bytes {}-{}/{}", first, contents.size() - 1,
                         contents.size())}};
  }

  // A well-behaved hub, ranges included.
  TestReply Answer(const TestRequest& request) const {
    if (request.path == "/api/models/" + id + "/revision/main?blobs=true") {
      return {200, Listing().dump(), {}};
    }
    const std::string prefix = "/" + id + "/resolve/" + kTestCommit + "/";
    if (request.path.rfind(prefix, 0) != 0) return {404, "", {}};
    const std::string name = request.path.substr(prefix.size());
    for (const auto* files : {&large, &small}) {
      const auto found = files->find(name);
      if (found != files->end()) return Slice(request, found->second);
    }
    return {404, "", {}};
  }
};

class HubTest : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("no_proxy", "127.0.0.1", 1); }

  DownloadOptions Options(const HttpTestServer& server) const {
    DownloadOptions options;
    options.repository = repository_.id;
    options.cache_folder = scratch_.path();
    options.endpoint = server.url();
    options.first_backoff = std::chrono::milliseconds(1);
    options.max_attempts = 3;
    options.stall_timeout = std::chrono::seconds(20);
    return options;
  }

  HubRepository cache() const { return {scratch_.path(), repository_.id}; }

  // Every file of the repository reads back through the snapshot.
  void ExpectWhole(const std::filesystem::path& snapshot) const {
    for (const auto* files : {&repository_.large, &repository_.small}) {
      for (const auto& [name, contents] : *files) {
        EXPECT_TRUE(std::filesystem::is_symlink(snapshot / name)) << name;
        EXPECT_TRUE(std::filesystem::read_symlink(snapshot / name).is_relative()) << name;
        const auto read = ReadFile(snapshot / name);
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(*read, contents) << name;
      }
    }
    const auto reference = ReadFile(cache().reference("main"));
    ASSERT_TRUE(reference);
    EXPECT_EQ(*reference, kTestCommit);
  }

  ScratchFolder scratch_;
  TestRepository repository_{
      "some-org/some-model",
      {{"model-00001-of-00002.safetensors", TestBytes(300000)},
       {"model-00002-of-00002.safetensors", TestBytes(70001)}},
      {{"config.json", "{\"a\": 1}"}, {"sub/dir/notes.txt", "hello"}, {"empty", ""}}};
};

}  // namespace deepinfer
