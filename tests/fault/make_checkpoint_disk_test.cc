// A checkpoint is made whole or not at all.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "loader/checkpoint_design.h"
#include "loader/make_checkpoint.h"
#include "tests/unit/loader/hub_test_repository.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

// Lets files of this process grow to a number of bytes only, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

MakeCheckpointOptions Options(const fs::path& folder) {
  MakeCheckpointOptions options;
  options.folder = folder;
  CheckpointDesign design;
  design.settings = {{"vocab_size", "64"}, {"dspark_noise_token_id", "63"}};
  options.config_json = DesignConfig(design).value();
  options.tokenizer_json = PadTokenizer(R"({"model": {"vocab": {"a": 0}}})", 64).value();
  options.engram_compressed_vocab_size = 64;
  return options;
}

TEST(MakeCheckpointFaultTest, AFullDiskIsResourceExhaustedAndLeavesNothing) {
  ScratchFolder scratch;
  const MakeCheckpointOptions options = Options(scratch.path() / "made");
  {
    const FileSizeLimit limit(1 << 20);
    const Status status = MakeCheckpoint(options, {});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted) << status.error().message;
    EXPECT_THAT(status.error().message, testing::HasSubstr("model.safetensors"));
  }
  EXPECT_TRUE(fs::is_empty(scratch.path()));
  EXPECT_TRUE(MakeCheckpoint(options, {}));
}

TEST(MakeCheckpointFaultTest, CancellationLeavesNothing) {
  ScratchFolder scratch;
  MakeCheckpointOptions options = Options(scratch.path() / "made");
  std::atomic<bool> cancelled = false;
  options.cancelled = &cancelled;
  const Status status = MakeCheckpoint(options, [&](std::string_view, uint64_t done, uint64_t) {
    EXPECT_FALSE(cancelled) << "after " << done << " bytes";
    cancelled = true;
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kCancelled) << status.error().message;
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(MakeCheckpointFaultTest, MoreBytesThanTheDiskHasFreeAreRefusedBeforeWriting) {
  ScratchFolder scratch;
  MakeCheckpointOptions options = Options(scratch.path() / "made");
  CheckpointDesign design;
  design.settings = {{"vocab_size", "64"},
                     {"dspark_noise_token_id", "63"},
                     {"engram_vocab_size", "2000000000"},
                     {"engram_head_dim", "8192"}};
  options.config_json = DesignConfig(design).value();
  const Status status = MakeCheckpoint(options, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

}  // namespace
}  // namespace deepinfer
