// The profile sees every kernel, changes nothing, and counts what the weights' report says.
#include "bench/kernel_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "bench/kernel_bench.h"
#include "engine/runtime.h"
#include "kernels/cpu/ceiling.h"
#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"
#include "loader/checkpoint_report.h"
#include "tokenizer/engram_token_map.h"

namespace deepinfer::bench {
namespace {

using kernels::KernelTable;

// The entries of a table as words, without its name.
std::vector<uintptr_t> Entries(const KernelTable& table) {
  std::vector<uintptr_t> words(sizeof(KernelTable) / sizeof(uintptr_t));
  std::memcpy(words.data(), &table, sizeof(table));
  words.erase(words.begin());
  return words;
}

TEST(KernelProfileTest, EveryEntryOfTheTableIsForwarded) {
  const std::vector<uintptr_t> plain = Entries(kernels::reference::Table());
  const std::vector<uintptr_t> profiled = Entries(ProfiledTable());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NE(profiled[i], 0u) << "entry " << i << " of KernelTable is missing in DI_KERNELS";
    EXPECT_NE(profiled[i], plain[i]) << i;
  }
}

class NanoProfileTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto runtime = Runtime::Load(std::string(DEEPINFER_SOURCE_DIR) + "/models/nano",
                                 {.check_weights = CheckWeights::kNone});
    ASSERT_TRUE(runtime) << runtime.error().message;
    runtime_ = *runtime;
  }
  static void TearDownTestSuite() { runtime_.reset(); }

  static std::unique_ptr<model::v41::Model> ProfiledModel() {
    const ModelConfig& config = runtime_->config();
    auto map = BuildEngramTokenMap(runtime_->tokenizer(), config.vocab_size,
                                   config.engram_compressed_vocab_size);
    auto model = model::v41::Model::Create(config, runtime_->checkpoint(), std::move(map).value(),
                                           ProfiledTable());
    return std::move(model).value();
  }
  static std::vector<float> Logits(const model::v41::Model& model,
                                   const std::vector<int32_t>& tokens) {
    model::v41::ForwardContext context(1);
    const auto state = model.NewSequence();
    const model::v41::SequenceChunk chunk{.state = state.get(), .tokens = tokens, .logits_rows = 1};
    std::vector<float> logits;
    EXPECT_TRUE(model.Forward(context, {&chunk, 1}, logits));
    return logits;
  }

  static std::shared_ptr<const Runtime> runtime_;
};
std::shared_ptr<const Runtime> NanoProfileTest::runtime_;

TEST_F(NanoProfileTest, AProfiledModelComputesTheSame) {
  const auto table = kernels::cpu::SelectTarget(runtime_->cpu_target());
  ASSERT_TRUE(table);
  KernelProfile profile(**table);
  EXPECT_EQ(Logits(*ProfiledModel(), {5, 6, 7}), Logits(runtime_->model(), {5, 6, 7}));
}

// Decode's bandwidth of several sequences rests on this count.
TEST_F(NanoProfileTest, OneTokenReadsTheRoutedExpertsThatTheReportCounts) {
  const auto table = kernels::cpu::SelectTarget(runtime_->cpu_target());
  ASSERT_TRUE(table);
  KernelProfile profile(**table);
  Logits(*ProfiledModel(), {5});
  const ActiveBytes active =
      BuildCheckpointReport(runtime_->config(), runtime_->checkpoint().tensors()).active;
  EXPECT_EQ(profile.fp4_bytes(), static_cast<double>(active.routed_experts));
  // Every weight of a product is used once, and codes of FP4 take half a byte.
  EXPECT_GT(profile.gemm_operations(), 2.0 * static_cast<double>(active.routed_experts));
  EXPECT_GT(profile.gemm_seconds(), 0);
  EXPECT_LE(profile.gemm_seconds(), profile.kernel_seconds());
  profile.Clear();
  EXPECT_TRUE(profile.counts().empty());
  EXPECT_EQ(profile.gemm_operations(), 0);
}

TEST(KernelBenchTest, EveryKernelThatTheModelCallsIsBenched) {
  const std::vector<std::string> benched = BenchedKernels();
  for (const char* kernel : {"gemm", "quantize_q8", "rms_norm", "mhc_mixes", "attention",
                             "index_scores", "select", "gate", "engram_gather", "top_logits"}) {
    EXPECT_THAT(benched, ::testing::Contains(kernel));
  }
}

TEST(CeilingTest, ReadSeesEveryByteOfItsRangeAndNoOther) {
  for (const kernels::cpu::Target& target : kernels::cpu::Targets()) {
    if (!target.supported) continue;
    const kernels::cpu::CeilingKernels& kernels = kernels::cpu::CeilingOf(*target.table);
    EXPECT_STREQ(kernels.name, target.name);
    constexpr int64_t kBytes = 2 * kernels::cpu::kReadStep;
    alignas(64) uint8_t data[kBytes + 64] = {};
    data[kBytes] = 0xff;
    EXPECT_EQ(kernels.read(data, kBytes), 0u) << target.name;
    for (int64_t i = 0; i < kBytes; ++i) {
      data[i] = 1;
      EXPECT_EQ(kernels.read(data, kBytes), 1u << (i % 4 * 8)) << target.name << " byte " << i;
      data[i] = 0;
    }
    for (int u = 0; u < kernels.unit_count; ++u) {
      EXPECT_GT(kernels.units[u].operations, 0) << target.name;
      EXPECT_GT(kernels.units[u].run(1), 0) << target.name;
    }
  }
}

}  // namespace
}  // namespace deepinfer::bench
