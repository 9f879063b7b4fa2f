// What goes wrong between the hub and the disk.
#include <gmock/gmock.h>

#include <mutex>
#include <thread>

#include "loader/download.h"
#include "tests/unit/loader/hub_test_repository.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kLarge[] = "model-00001-of-00002.safetensors";

class DownloadFaultTest : public HubTest {
 protected:
  std::string LargeDigest() const {
    return HexDigest(DigestKind::kSha256, repository_.large.at(kLarge));
  }
  // Counts the requests for the large file and lets `change` alter the answer number `n` (from 0).
  HttpTestServer::Handler Alter(std::function<void(int n, const TestRequest&, TestReply&)> change) {
    return [this, change](const TestRequest& request) {
      TestReply reply = repository_.Answer(request);
      if (request.path.find(kLarge) != request.path.npos) {
        change(large_requests_++, request, reply);
      }
      return reply;
    };
  }

  std::atomic<int> large_requests_{0};
};

TEST_F(DownloadFaultTest, CutConnectionsAreResumedWithRanges) {
  HttpTestServer server(Alter([](int n, const TestRequest&, TestReply& reply) {
    if (n < 5) reply.cut_after = 40000;  // more cuts than max_attempts: progress resets the count
  }));
  const auto snapshot = DownloadRepository(Options(server), {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ExpectWhole(*snapshot);
  int ranges = 0;
  for (const TestRequest& request : server.requests()) {
    ranges += request.header("range") == fmt::format("bytes={}-", 40000 * (ranges + 1));
  }
  EXPECT_EQ(ranges, 5);
}

TEST_F(DownloadFaultTest, AnInterruptedRunLeavesNoSnapshotAndIsContinued) {
  {
    HttpTestServer server(Alter([](int n, const TestRequest&, TestReply& reply) {
      if (n == 0) {
        reply.cut_after = 100000;
      } else {
        reply = {404, "", {}};
      }
    }));
    const auto result = DownloadRepository(Options(server), {});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(fs::file_size(cache().partial_blob(LargeDigest())), 100000u);
    EXPECT_FALSE(fs::exists(cache().blob(LargeDigest())));
    EXPECT_FALSE(fs::exists(cache().reference("main")));
  }
  HttpTestServer server(Alter([](int, const TestRequest& request, TestReply&) {
    EXPECT_EQ(request.header("range"), "bytes=100000-");
  }));
  const auto snapshot = DownloadRepository(Options(server), {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ExpectWhole(*snapshot);
}

TEST_F(DownloadFaultTest, AServerThatIgnoresRangesStartsTheFileOver) {
  HttpTestServer server(Alter([this](int n, const TestRequest&, TestReply& reply) {
    reply = {200, repository_.large.at(kLarge), {}};
    if (n == 0) reply.cut_after = 1234;
  }));
  const auto snapshot = DownloadRepository(Options(server), {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ExpectWhole(*snapshot);
}

TEST_F(DownloadFaultTest, ARangeFromTheWrongPlaceIsRefused) {
  HttpTestServer server(Alter([](int n, const TestRequest&, TestReply& reply) {
    if (n == 0) {
      reply.cut_after = 1000;
    } else {
      reply.headers = {"Content-Range: bytes 900-299999/300000"};
    }
  }));
  const auto result = DownloadRepository(Options(server), {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("asked for bytes from 1000"));
}

TEST_F(DownloadFaultTest, AWrongChecksumNamesBothDigestsAndKeepsNothing) {
  const std::string damaged = TestBytes(300001).substr(1);
  HttpTestServer server(Alter([&](int, const TestRequest& request, TestReply& reply) {
    reply = TestRepository::Slice(request, damaged);
  }));
  const auto result = DownloadRepository(Options(server), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(result.error().message, HasSubstr(LargeDigest()));
  EXPECT_THAT(result.error().message, HasSubstr(HexDigest(DigestKind::kSha256, damaged)));
  EXPECT_THAT(result.error().message, HasSubstr(kLarge));
  EXPECT_EQ(fs::file_size(cache().partial_blob(LargeDigest())), 0u);
  EXPECT_FALSE(fs::exists(cache().blob(LargeDigest())));
  EXPECT_FALSE(fs::exists(cache().reference("main")));
  EXPECT_EQ(large_requests_, 1);
}

TEST_F(DownloadFaultTest, DamagedLeftoversOfAnEarlierRunGetOneFreshStart) {
  fs::create_directories(cache().folder() / "blobs");
  ASSERT_TRUE(WriteFileAtomically(cache().partial_blob(LargeDigest()), std::string(5000, 'x')));
  HttpTestServer server([&](const TestRequest& r) { return repository_.Answer(r); });
  const auto snapshot = DownloadRepository(Options(server), {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ExpectWhole(*snapshot);
  EXPECT_EQ(server.Count(kLarge), 2u);
}

TEST_F(DownloadFaultTest, LeftoversLongerThanTheFileAreDropped) {
  fs::create_directories(cache().folder() / "blobs");
  ASSERT_TRUE(WriteFileAtomically(cache().partial_blob(LargeDigest()), std::string(300001, 'x')));
  HttpTestServer server([&](const TestRequest& r) { return repository_.Answer(r); });
  const auto snapshot = DownloadRepository(Options(server), {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ExpectWhole(*snapshot);
}

TEST_F(DownloadFaultTest, ABlobOfTheWrongLengthIsFetchedAgain) {
  fs::create_directories(cache().folder() / "blobs");
  ASSERT_TRUE(WriteFileAtomically(cache().blob(LargeDigest()), "cut short"));
  HttpTestServer server([&](const TestRequest& r) { return repository_.Answer(r); });
  const auto snapshot = DownloadRepository(Options(server), {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ExpectWhole(*snapshot);
}

TEST_F(DownloadFaultTest, AServerErrorThatPassesIsRetried) {
  std::atomic<int> listings{0};
  HttpTestServer server([&](const TestRequest& request) -> TestReply {
    if (request.path.find("/api/") == 0 && listings++ == 0) return {503, "", {"Retry-After: 0"}};
    TestReply reply = repository_.Answer(request);
    if (request.path.find(kLarge) != request.path.npos && large_requests_++ < 2)
      reply = {500, "", {}};
    return reply;
  });
  const auto snapshot = DownloadRepository(Options(server), {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ExpectWhole(*snapshot);
  EXPECT_EQ(large_requests_, 3);
}

TEST_F(DownloadFaultTest, AServerErrorThatStaysIsReportedAfterBoundedAttempts) {
  HttpTestServer server(
      Alter([](int, const TestRequest&, TestReply& reply) { reply = {500, "", {}}; }));
  const auto result = DownloadRepository(Options(server), {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("status 500"));
  EXPECT_THAT(result.error().message, HasSubstr("gave up after 3 attempts"));
  EXPECT_EQ(large_requests_, 3);
}

TEST_F(DownloadFaultTest, AnotherLengthThanListedIsRefusedBeforeItFillsTheDisk) {
  HttpTestServer server(Alter(
      [](int, const TestRequest&, TestReply& reply) { reply = {200, TestBytes(400000), {}}; }));
  const auto result = DownloadRepository(Options(server), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(result.error().message, HasSubstr("Content-Length is 400000, expected 300000"));
}

TEST_F(DownloadFaultTest, EvilFileNamesTouchNothing) {
  for (const std::string name : {"../../../escaped", "/tmp/escaped", "a/../../../../escaped"}) {
    HttpTestServer server([&](const TestRequest&) -> TestReply {
      nlohmann::json listing = repository_.Listing();
      listing["siblings"][0]["rfilename"] = name;
      return {200, listing.dump(), {}};
    });
    const auto result = DownloadRepository(Options(server), {});
    ASSERT_FALSE(result) << name;
    EXPECT_EQ(result.error().code, ErrorCode::kDataLoss);
    EXPECT_EQ(server.requests().size(), 1u);
  }
  EXPECT_TRUE(fs::is_empty(cache().folder() / "blobs"));
  EXPECT_FALSE(fs::exists(cache().folder() / "snapshots"));
}

TEST_F(DownloadFaultTest, AFullDiskIsResourceExhaustedAndTheRestIsKept) {
  // Writing to /dev/full fails as a full disk does.
  fs::create_directories(cache().folder() / "blobs");
  fs::create_symlink("/dev/full", cache().partial_blob(LargeDigest()));
  HttpTestServer server([&](const TestRequest& r) { return repository_.Answer(r); });
  const auto result = DownloadRepository(Options(server), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(result.error().message, HasSubstr("can be resumed"));
  EXPECT_FALSE(fs::exists(cache().reference("main")));

  fs::remove(cache().partial_blob(LargeDigest()));
  const auto snapshot = DownloadRepository(Options(server), {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(server.Count("config.json"), 1u);
}

TEST_F(DownloadFaultTest, MoreBytesThanTheDiskHasFreeAreRefusedAtOnce) {
  HttpTestServer server([&](const TestRequest&) -> TestReply {
    nlohmann::json listing = repository_.Listing();
    for (auto& file : listing["siblings"]) file["size"] = uint64_t{1} << 46;
    return {200, listing.dump(), {}};
  });
  const auto result = DownloadRepository(Options(server), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(server.Count("/resolve/"), 0u);
}

TEST_F(DownloadFaultTest, CancellingIsPromptAndResumable) {
  std::atomic<bool> cancelled{false};
  HttpTestServer server(Alter([](int n, const TestRequest&, TestReply& reply) {
    if (n == 0) reply.cut_after = 50000;
  }));
  DownloadOptions options = Options(server);
  options.cancelled = &cancelled;
  options.first_backoff = std::chrono::minutes(5);
  const auto result = DownloadRepository(options, [&](std::string_view what, uint64_t, uint64_t) {
    if (what == kLarge) cancelled = true;
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  const auto snapshot = DownloadRepository(Options(server), {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ExpectWhole(*snapshot);
}

TEST_F(DownloadFaultTest, TwoDownloadsAtOnceFetchEachBlobOnce) {
  HttpTestServer server([&](const TestRequest& r) { return repository_.Answer(r); });
  const auto download = [&] {
    const auto snapshot = DownloadRepository(Options(server), {});
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    ExpectWhole(*snapshot);
  };
  std::thread other(download);
  download();
  other.join();
  EXPECT_EQ(server.Count("/resolve/"), 4u);
}

}  // namespace
}  // namespace deepinfer
