#include "loader/download.h"

#include <gmock/gmock.h>

#include "loader/http_client.h"
#include "loader/hub_listing.h"
#include "tests/unit/loader/hub_test_repository.h"

namespace deepinfer {
namespace {

using ::testing::HasSubstr;
using DownloadTest = HubTest;

TEST_F(DownloadTest, FreshDownloadGivesTheCacheLayoutAndIsNotRepeated) {
  HttpTestServer server([&](const TestRequest& r) { return repository_.Answer(r); });
  uint64_t last_done = 0, last_total = 1;
  const auto progress = [&](std::string_view, uint64_t done, uint64_t total) {
    EXPECT_GE(done, last_done);
    last_done = done;
    last_total = total;
  };
  const auto snapshot = DownloadRepository(Options(server), progress);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(*snapshot, cache().snapshot(kTestCommit));
  ExpectWhole(*snapshot);
  EXPECT_EQ(last_done, last_total);
  EXPECT_EQ(last_total, 300000u + 70001 + 8 + 5);
  EXPECT_FALSE(
      std::filesystem::exists(cache().partial_blob(HexDigest(DigestKind::kGitBlob, "{\"a\": 1}"))));

  const size_t before = server.Count("/resolve/");
  EXPECT_EQ(before, 4u);  // the empty file needs no request
  ASSERT_TRUE(DownloadRepository(Options(server), {}));
  EXPECT_EQ(server.Count("/resolve/"), before);
}

TEST_F(DownloadTest, TokenReachesTheEndpointButNoRedirectTarget) {
  HttpTestServer storage([&](const TestRequest& r) {
    const auto& files = repository_.large;
    return TestRepository::Slice(r, files.at(r.path.substr(1, r.path.find('?') - 1)));
  });
  HttpTestServer server([&](const TestRequest& r) -> TestReply {
    const size_t name = r.path.find("model-0");
    if (name == r.path.npos) return repository_.Answer(r);
    return {302, "", {"Location: " + storage.url() + "/" + r.path.substr(name) + "?signature=s3"}};
  });
  DownloadOptions options = Options(server);
  options.token = "hf_secret";
  const auto snapshot = DownloadRepository(options, {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ExpectWhole(*snapshot);
  for (const TestRequest& request : server.requests()) {
    EXPECT_EQ(request.header("authorization"), "Bearer hf_secret") << request.path;
  }
  ASSERT_EQ(storage.requests().size(), 2u);
  for (const TestRequest& request : storage.requests()) {
    EXPECT_EQ(request.header("authorization"), "") << request.path;
  }
}

TEST_F(DownloadTest, RefusalsNameThePathAndStatus) {
  struct Case {
    int status;
    ErrorCode code;
    const char* hint;
  };
  for (const Case& c : {Case{404, ErrorCode::kNotFound, "status 404, expected 200"},
                        Case{401, ErrorCode::kInvalidArgument, "HF_TOKEN"},
                        Case{403, ErrorCode::kInvalidArgument, "gated model"}}) {
    HttpTestServer server([&](const TestRequest&) {
      return TestReply{c.status, "no", {"X-Error-Message: gated model"}};
    });
    DownloadOptions options = Options(server);
    options.token = "hf_secret";
    const auto result = DownloadRepository(options, {});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, c.code);
    EXPECT_THAT(result.error().message, HasSubstr("/api/models/some-org/some-model/revision/main"));
    EXPECT_THAT(result.error().message, HasSubstr(c.hint));
    EXPECT_THAT(result.error().message, Not(HasSubstr("hf_secret")));
    EXPECT_EQ(server.requests().size(), 1u);  // not worth repeating
  }
}

TEST_F(DownloadTest, RedirectLoopsAndForeignSchemesAreRefused) {
  for (const std::string target : {"/again", "file:///etc/passwd", "ftp://127.0.0.1/x"}) {
    HttpTestServer server(
        [&](const TestRequest&) { return TestReply{302, "", {"Location: " + target}}; });
    const auto result = DownloadRepository(Options(server), {});
    ASSERT_FALSE(result) << target;
    EXPECT_EQ(result.error().code, ErrorCode::kIo) << target;
    EXPECT_LE(server.requests().size(), 11u);
  }
}

TEST_F(DownloadTest, BadOptionsAreNamed) {
  HttpTestServer server([&](const TestRequest& r) { return repository_.Answer(r); });
  const auto message = [&](auto change) {
    DownloadOptions options = Options(server);
    change(options);
    const auto result = DownloadRepository(options, {});
    EXPECT_FALSE(result);
    return result ? std::string() : result.error().message;
  };
  EXPECT_THAT(message([](auto& o) { o.repository = "../x"; }), HasSubstr("../x"));
  EXPECT_THAT(message([](auto& o) { o.revision = "../../y"; }), HasSubstr("../../y"));
  EXPECT_THAT(message([](auto& o) { o.endpoint = "file:///tmp"; }), HasSubstr("file:///tmp"));
  EXPECT_THAT(message([](auto& o) { o.token = "a\nHost: b"; }), HasSubstr("token"));
  EXPECT_THAT(message([](auto& o) { o.max_attempts = 0; }), HasSubstr("max_attempts is 0"));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(DownloadTest, UnreachableServerIsAnErrorAfterBoundedAttempts) {
  DownloadOptions options;
  {
    HttpTestServer server([](const TestRequest&) { return TestReply{}; });
    options = Options(server);
  }
  const auto result = DownloadRepository(options, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_THAT(result.error().message, HasSubstr("gave up after 3 attempts"));
}

TEST(DownloadOptionsTest, EnvironmentChoosesEndpointTokenAndCache) {
  const std::map<std::string, std::string> variables = {
      {"HF_ENDPOINT", "http://mirror"}, {"HF_TOKEN", "t"}, {"HF_HOME", "/cache"}};
  const auto options =
      DownloadOptionsFromEnvironment([&](std::string_view name) -> std::optional<std::string> {
        const auto found = variables.find(std::string(name));
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      });
  ASSERT_TRUE(options);
  EXPECT_EQ(options->endpoint, "http://mirror");
  EXPECT_EQ(options->token, "t");
  EXPECT_EQ(options->cache_folder, "/cache/hub");
  EXPECT_EQ(options->repository, "deepseek-ai/DeepSeek-V4.1-Flash-1017");
}

TEST(HubListingTest, UnsafeFileNamesAreRefused) {
  for (const std::string name : {"", "/etc/passwd", "../x", "a/../b", "a/..", ".", "a//b", "a/",
                                 "a\\b", "line\nbreak", "esc\x1b[0m"}) {
    EXPECT_FALSE(CheckHubFileName(name)) << name;
  }
  EXPECT_FALSE(CheckHubFileName(std::string("nul\0byte", 8)));
  EXPECT_FALSE(CheckHubFileName(std::string(256, 'x')));
  for (const std::string name : {"config.json", "a/b/c.txt", "..a", ".gitattributes", "模型.bin"}) {
    EXPECT_TRUE(CheckHubFileName(name)) << name;
  }
}

TEST(HubListingTest, EveryFieldIsChecked) {
  const auto listing = [](const std::string& entry, const std::string& sha = kTestCommit) {
    return ParseHubListing("{\"sha\":\"" + sha + "\",\"siblings\":[" + entry + "]}");
  };
  const std::string hash(40, 'a');
  const std::string good = R"({"rfilename":"f","size":3,"blobId":")" + hash + "\"}";
  EXPECT_TRUE(listing(good));
  EXPECT_FALSE(listing(good + "," + good));
  EXPECT_FALSE(listing(""));
  EXPECT_FALSE(listing(good, "main"));
  EXPECT_FALSE(listing(good, std::string(40, 'G')));
  EXPECT_FALSE(listing("7"));
  EXPECT_FALSE(listing(R"({"rfilename":"f","size":-1,"blobId":")" + hash + "\"}"));
  EXPECT_FALSE(listing(R"({"rfilename":"f","size":1e3,"blobId":")" + hash + "\"}"));
  EXPECT_FALSE(listing(R"({"rfilename":"f","blobId":")" + hash + "\"}"));
  EXPECT_FALSE(listing(R"({"rfilename":"f","size":3,"blobId":"../../x"})"));
  EXPECT_FALSE(listing(R"({"rfilename":"f","size":3,"lfs":{"sha256":")" + hash + "\"}}"));
  EXPECT_FALSE(ParseHubListing("[1"));
  EXPECT_FALSE(ParseHubListing("[]"));
}

TEST(HttpClientTest, OriginsIgnoreCaseAndDefaultPorts) {
  EXPECT_EQ(UrlOrigin("HTTPS://Hub.example/a"), "https://hub.example:443");
  EXPECT_EQ(UrlOrigin("http://hub.example:80/a"), UrlOrigin("http://HUB.example"));
  EXPECT_NE(UrlOrigin("http://hub.example:81"), UrlOrigin("http://hub.example"));
  EXPECT_NE(UrlOrigin("http://hub.example"), UrlOrigin("https://hub.example"));
  EXPECT_EQ(UrlOrigin("ftp://hub.example"), "");
  EXPECT_EQ(UrlOrigin("hub"), "");
  EXPECT_EQ(UrlForMessage("https://me:pw@hub.example/a?sig=1"), "https://hub.example/a");
  EXPECT_EQ(EncodeUrlPath("a b/ü?#%"), "a%20b/%C3%BC%3F%23%25");
}

TEST(DigestTest, KnownValues) {
  EXPECT_EQ(HexDigest(DigestKind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // `git hash-object` of an empty file and of "hello\n".
  EXPECT_EQ(HexDigest(DigestKind::kGitBlob, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(HexDigest(DigestKind::kGitBlob, "hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
}

}  // namespace
}  // namespace deepinfer
