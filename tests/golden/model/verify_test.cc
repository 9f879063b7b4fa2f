// `deepinfer verify`: a dump of our own forward agrees with itself, a changed one is caught where
// it was changed.
#include "engine/verify.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "engine/runtime.h"
#include "tests/golden/support/toy.h"
#include "tests/support/test_kernels.h"

namespace deepinfer::golden {
namespace {

using model::v41::ForwardContext;

struct Stored {
  std::string name;
  DType dtype;
  Shape shape;
  std::string bytes;
};

class Recorder final : public model::v41::ForwardProbe {
 public:
  void OnTensor(std::string_view name, const TensorView& value, std::byte* bytes) override {
    // Layer parts are enough, and the selections come row group by row group.
    if (name.find("layers.") != 0 || name.find("index_score") != std::string_view::npos) return;
    tensors.push_back({std::string(name), value.dtype, value.shape,
                       std::string(reinterpret_cast<const char*>(bytes), value.bytes())});
  }
  std::vector<Stored> tensors;
};

void WriteDump(const std::filesystem::path& path, const std::vector<Stored>& tensors) {
  std::string header = "{", data;
  for (const Stored& t : tensors) {
    header += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", t.name, DTypeName(t.dtype),
                          ShapeString(t.shape), data.size(), data.size() + t.bytes.size());
    data += t.bytes;
  }
  header += "}";
  const uint64_t size = header.size();
  std::ofstream(path, std::ios::binary)
      << std::string_view(reinterpret_cast<const char*>(&size), 8) << header << data;
}

class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Runtime::Load(std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano",
                                {CheckWeights::kNone, kernels::TestTarget()});
    ASSERT_TRUE(loaded) << loaded.error().message;
    runtime_ = *loaded;
    std::string name =
        (std::filesystem::temp_directory_path() / "deepinfer-verify-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 150; ++i) tokens.push_back(i == 0 ? 0 : 300 + i * 31 % 5000);
    Recorder recorder;
    context_.probe = &recorder;
    const auto state = runtime_->model().NewSequence(true);
    RunForward(runtime_->model(), context_, *state, tokens);
    context_.probe = nullptr;
    tensors_ = std::move(recorder.tensors);
    tensors_.push_back({"tokens",
                        DType::kI32,
                        {std::ssize(tokens)},
                        std::string(reinterpret_cast<const char*>(tokens.data()),
                                    tokens.size() * sizeof(int32_t))});
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  Result<VerifyReport> Run(bool free_running) {
    WriteDump(dir_ / "dump.safetensors", tensors_);
    DI_ASSIGN_OR_RETURN(const VerifyDump dump, FindVerifyDump(dir_ / "dump.safetensors", ""));
    return Verify(runtime_->model(), context_, dump, free_running);
  }
  Stored& Tensor(std::string_view name) {
    return *std::find_if(tensors_.begin(), tensors_.end(),
                         [&](const Stored& t) { return t.name == name; });
  }

  std::shared_ptr<const Runtime> runtime_;
  std::filesystem::path dir_;
  ForwardContext context_{2};
  std::vector<Stored> tensors_;
};

TEST_F(VerifyTest, OwnDumpAgreesInEveryBit) {
  for (const bool free_running : {false, true}) {
    const auto report = Run(free_running);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->first_divergence(), nullptr);
    EXPECT_TRUE(report->unused.empty());
    EXPECT_GT(report->tensors.size(), 250u);
    for (const TensorComparison& t : report->tensors) EXPECT_EQ(t.differing, 0u) << t.name;
  }
}

TEST_F(VerifyTest, FirstDivergenceIsTheTensorThatWasChanged) {
  // The sign of one query value, in the middle of the model; blocks after it start from the dump.
  Tensor("layers.4.attn_q").bytes[1] ^= '\x80';
  const auto report = Run(/*free_running=*/false);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_NE(report->first_divergence(), nullptr);
  EXPECT_EQ(report->first_divergence()->name, "layers.4.attn_q");
  EXPECT_EQ(report->first_divergence()->differing, 1u);
  EXPECT_EQ(std::count_if(report->tensors.begin(), report->tensors.end(),
                          [](const TensorComparison& t) { return !t.agrees; }),
            1);
}

TEST_F(VerifyTest, SelectionsOutsideTheCacheAreReportedAndNotRead) {
  Stored& list = Tensor("layers.2.topk_idxs");
  const int32_t beyond = 1 << 30;
  for (size_t i = 0; i + 4 <= list.bytes.size(); i += 4) std::memcpy(&list.bytes[i], &beyond, 4);
  const auto report = Run(/*free_running=*/false);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_NE(report->first_divergence(), nullptr);
  EXPECT_EQ(report->first_divergence()->name, "layers.2.topk_idxs");
}

TEST_F(VerifyTest, OtherShapesAreNamedWithBoth) {
  Tensor("layers.0.attn_in").shape = {384, 150};
  const auto report = Run(/*free_running=*/false);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_NE(report->first_divergence(), nullptr);
  EXPECT_EQ(report->first_divergence()->problem,
            "ours is BF16 [150, 384], the dump's BF16 [384, 150]");
}

TEST_F(VerifyTest, DumpsWithoutPromptOrKnownTensorsAreRefused) {
  tensors_ = {{"tokens", DType::kI32, {1}, std::string(4, '\0')},
              {"something", DType::kU8, {1}, "x"}};
  EXPECT_FALSE(Run(false));
  tensors_ = {{"layers.0.x_in", DType::kU8, {1}, "x"}};
  const auto report = Run(false);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("prompts.safetensors"), std::string::npos);
  const auto nowhere = FindVerifyDump(dir_ / "nowhere", "");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace deepinfer::golden
