#include "loader/tensor_contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "tests/unit/loader/tiny_checkpoint.h"

namespace deepinfer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ModelConfig ReleaseConfig() {
  const auto text = ReadFile(std::filesystem::path(DEEPINFER_SOURCE_DIR) /
                             "tests/golden/data/release-config.json");
  EXPECT_TRUE(text);
  auto config = ParseModelConfig(text.value_or(""));
  EXPECT_TRUE(config);
  return config.value_or(ModelConfig{});
}

// Exactly what the contract wants.
std::vector<StoredTensor> Complete(const ModelConfig& config) {
  std::vector<StoredTensor> tensors;
  for (const ExpectedTensor& want : ExpectedTensors(config)) {
    tensors.push_back(Described(want.name, want.dtype, want.shape));
  }
  return tensors;
}

void Erase(std::vector<StoredTensor>& tensors, const std::string& name) {
  ASSERT_EQ(std::erase_if(tensors, [&](const StoredTensor& t) { return t.name == name; }), 1u);
}

StoredTensor& Get(std::vector<StoredTensor>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const StoredTensor& t) { return t.name == name; });
  EXPECT_NE(found, tensors.end()) << name;
  return *found;
}

std::string ErrorOf(const ModelConfig& config, const std::vector<StoredTensor>& tensors) {
  const auto checked = CheckTensorContract(config, tensors);
  if (checked) return "accepted";
  EXPECT_EQ(checked.error().code, ErrorCode::kDataLoss);
  return checked.error().message;
}

TEST(TensorContract, ReleaseHasTheKnownCountsAndBytesByDType) {
  std::map<DType, int64_t> counts;
  std::map<DType, int64_t> bytes;
  for (const ExpectedTensor& want : ExpectedTensors(ReleaseConfig())) {
    ++counts[want.dtype];
    bytes[want.dtype] += static_cast<int64_t>(TensorView{want.dtype, want.shape, nullptr}.bytes());
    EXPECT_FALSE(want.optional) << want.name;
  }
  // The inventory of the real shards; its 520 BF16 tensors include 259 of the vision tower, 4 of
  // the aligner and 3 image vectors.
  EXPECT_EQ(counts[DType::kBF16], 520 - 266);
  EXPECT_EQ(counts[DType::kF32], 387);
  EXPECT_EQ(counts[DType::kF8E4M3], 357);
  EXPECT_EQ(counts[DType::kF8E8M0], 47589);
  EXPECT_EQ(counts[DType::kI8], 47232);
  EXPECT_EQ(bytes[DType::kF32], 169229128);
  EXPECT_EQ(bytes[DType::kF8E4M3], 204015223296);
  EXPECT_EQ(bytes[DType::kF8E8M0], 23563015184);
  EXPECT_EQ(bytes[DType::kI8], 278585671680);
}

TEST(TensorContract, ReleaseShapesFollowTheSpecificationTable) {
  std::map<std::string, ExpectedTensor> wanted;
  for (const ExpectedTensor& want : ExpectedTensors(ReleaseConfig())) wanted[want.name] = want;
  const auto expect = [&](const std::string& name, DType dtype, const Shape& shape) {
    ASSERT_TRUE(wanted.contains(name)) << name;
    EXPECT_EQ(wanted[name].dtype, dtype) << name;
    EXPECT_EQ(wanted[name].shape, shape) << name;
  };
  expect("embed.weight", DType::kBF16, {129280, 5120});
  expect("layers.7.attn.wq_b.weight", DType::kF8E4M3, {32768, 1280});
  expect("layers.7.attn.wq_b.scale", DType::kF8E8M0, {1024, 40});
  expect("layers.7.attn.wo_a.weight", DType::kF8E4M3, {8192, 4096});
  expect("layers.7.attn.wo_b.weight", DType::kF8E4M3, {5120, 8192});
  expect("layers.7.attn.attn_sink", DType::kF32, {64});
  expect("layers.20.attn.compressor.wkv.weight", DType::kBF16, {512, 5120});
  expect("layers.14.attn.compressor.wgate.weight", DType::kBF16, {512, 5120});
  expect("layers.20.attn.indexer.wk.weight", DType::kBF16, {128, 512});
  expect("layers.36.attn.indexer.wq_b.weight", DType::kF8E4M3, {4096, 1280});
  expect("layers.36.attn.indexer.weights_proj.weight", DType::kBF16, {32, 5120});
  expect("layers.3.ffn.experts.383.w1.weight", DType::kI8, {2304, 2560});
  expect("layers.3.ffn.experts.383.w1.scale", DType::kF8E8M0, {2304, 160});
  expect("layers.3.ffn.experts.0.w2.weight", DType::kI8, {5120, 1152});
  expect("layers.3.ffn.experts.0.w2.scale", DType::kF8E8M0, {5120, 72});
  expect("layers.3.ffn.shared_experts.w2.weight", DType::kF8E4M3, {5120, 2304});
  expect("layers.39.hc_attn_fn", DType::kF32, {24, 20480});
  expect("layers.39.hc_ffn_scale", DType::kF32, {3});
  expect("layers.14.engram.embed.weight", DType::kF8E4M3, {384016682, 256});
  expect("layers.14.engram.embed.scale", DType::kF8E8M0, {384016682, 8});
  expect("layers.1.engram.wkv.weight", DType::kF8E4M3, {25600, 6144});
  expect("layers.1.engram.q_weight", DType::kBF16, {4, 5120});
  expect("mtp.0.main_proj.weight", DType::kF8E4M3, {5120, 15360});
  expect("mtp.0.main_proj.scale", DType::kF8E8M0, {160, 480});
  expect("mtp.1.ffn.gate.bias_vl", DType::kF32, {128});
  expect("mtp.2.markov_head.head.weight", DType::kBF16, {129280, 256});
  expect("mtp.2.confidence_head.proj.weight", DType::kBF16, {1, 5376});
  for (const char* absent :
       {"layers.20.attn.compressor.wgate.weight", "layers.24.attn.indexer.wk.weight",
        "layers.21.attn.indexer.wq_b.weight", "layers.0.attn.compressor.wkv.weight",
        "layers.2.engram.q_weight", "mtp.1.main_norm.weight", "mtp.0.norm.weight",
        "mtp.0.ffn.experts.128.w1.weight", "layers.40.attn_norm.weight"}) {
    EXPECT_FALSE(wanted.contains(absent)) << absent;
  }
}

TEST(TensorContract, ExactlyTheExpectedTensorsPass) {
  const ModelConfig config = TinyConfig();
  const std::vector<StoredTensor> tensors = Complete(config);
  const auto summary = CheckTensorContract(config, tensors);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->checked, static_cast<int64_t>(tensors.size()));
  EXPECT_EQ(summary->ignored, 0);
}

TEST(TensorContract, EachMissingTensorIsNamed) {
  const ModelConfig config = TinyConfig();
  const std::vector<StoredTensor> complete = Complete(config);
  for (const ExpectedTensor& want : ExpectedTensors(config)) {
    std::vector<StoredTensor> tensors = complete;
    Erase(tensors, want.name);
    const std::string error = ErrorOf(config, tensors);
    if (want.optional) {
      EXPECT_EQ(error, "accepted") << want.name;
    } else {
      EXPECT_THAT(error, HasSubstr("missing " + want.name + " ("));
    }
  }
}

TEST(TensorContract, AllProblemsStandInOneMessage) {
  const ModelConfig config = TinyConfig();
  std::vector<StoredTensor> tensors = Complete(config);
  Erase(tensors, "norm.weight");
  Get(tensors, "head.weight").view.dtype = DType::kF32;
  Get(tensors, "layers.1.attn.wkv.scale").view.shape = {2, 1};
  tensors.push_back(Described("layers.0.attn.ape", DType::kF32, {4}, "shard-7"));
  EXPECT_EQ(ErrorOf(config, tensors),
            "the checkpoint's tensors do not fit its configuration, 4 problems:\n"
            "  layers.1.attn.wkv.scale is F8_E8M0 [2, 1]; it must be F8_E8M0 [1, 1]\n"
            "  missing norm.weight (BF16 [32])\n"
            "  head.weight is F32 [48, 32]; it must be BF16 [48, 32]\n"
            "  surplus layers.0.attn.ape (F32 [4], in shard-7)");
}

TEST(TensorContract, LongListsAreCutAfterFiftyLines) {
  const ModelConfig config = TinyConfig();
  const size_t needed = std::ranges::count_if(ExpectedTensors(config),
                                              [](const auto& want) { return !want.optional; });
  const std::string error = ErrorOf(config, {});
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 51);
  EXPECT_THAT(error, HasSubstr(fmt::format("{} problems", needed)));
  EXPECT_THAT(error, HasSubstr(fmt::format("... and {} more", needed - 50)));
}

TEST(TensorContract, ImageBiasIsNeededOnlyWithVision) {
  ModelConfig config = TinyConfig();
  const std::string name = "layers.0.ffn.gate.bias_vl";
  std::vector<StoredTensor> tensors = Complete(config);
  EXPECT_EQ(ErrorOf(config, tensors), "accepted") << "present without vision, as in nano";
  Get(tensors, name).view.shape = {1};
  EXPECT_THAT(ErrorOf(config, tensors), HasSubstr(name + " is F32 [1]; it must be F32 [3]"));
  Erase(tensors, name);
  EXPECT_EQ(ErrorOf(config, tensors), "accepted");
  config.has_vision = true;
  EXPECT_THAT(ErrorOf(config, tensors), HasSubstr("missing " + name));
}

TEST(TensorContract, VisionTensorsAreIgnoredOnlyWithVision) {
  ModelConfig config = TinyConfig();
  std::vector<StoredTensor> tensors = Complete(config);
  for (const char* name : {"vision.blocks.0.norm1.weight", "aligner.w1.bias", "image_start"}) {
    tensors.push_back(Described(name, DType::kBF16, {16}, "s"));
  }
  EXPECT_THAT(ErrorOf(config, tensors),
              AllOf(HasSubstr("surplus vision.blocks.0.norm1.weight"),
                    HasSubstr("surplus aligner.w1.bias"), HasSubstr("surplus image_start")));
  config.has_vision = true;
  const auto summary = CheckTensorContract(config, tensors);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->ignored, 3);
}

TEST(TensorContract, DraftCopiesOfEmbedAndHeadAreIgnored) {
  const ModelConfig config = TinyConfig();
  std::vector<StoredTensor> tensors = Complete(config);
  tensors.push_back(Described("mtp.0.embed.weight", DType::kBF16, {48, 32}, "s"));
  tensors.push_back(Described("mtp.0.head.weight", DType::kBF16, {48, 32}, "s"));
  const auto summary = CheckTensorContract(config, tensors);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->ignored, 2);
  for (const char* name : {"mtp.embed.weight", "mtp.0.embed.scale", "mtp.0x.head.weight", "mtp."}) {
    EXPECT_FALSE(IsIgnoredTensor(config, name)) << name;
  }
}

TEST(TensorContract, FirstAndLastDraftStageCarryTheSharedParts) {
  auto json = TinyConfigJson();
  json["text_config"]["num_nextn_predict_layers"] = 3;
  json["text_config"]["compress_ratios"] = {0, 2, 1, 0, 0, 0};
  const auto config = ParseModelConfig(json.dump());
  ASSERT_TRUE(config) << config.error().message;
  std::vector<std::string> shared;
  for (const ExpectedTensor& want : ExpectedTensors(*config)) {
    if (want.name.starts_with("mtp.") &&
        (want.name.find("main") != std::string::npos ||
         want.name.find("_head") != std::string::npos || want.name.ends_with(".norm.weight"))) {
      shared.push_back(want.name);
    }
  }
  EXPECT_THAT(shared, ElementsAre("mtp.0.main_proj.weight", "mtp.0.main_proj.scale",
                                  "mtp.0.main_norm.weight", "mtp.2.norm.weight",
                                  "mtp.2.markov_head.embed.weight", "mtp.2.markov_head.head.weight",
                                  "mtp.2.confidence_head.proj.weight"));
}

TEST(TensorContract, ClassifiesLargeTensorsByName) {
  EXPECT_TRUE(IsEngramTable("layers.1.engram.embed.weight"));
  EXPECT_TRUE(IsEngramTable("layers.14.engram.embed.scale"));
  EXPECT_FALSE(IsEngramTable("layers.1.engram.wkv.weight"));
  EXPECT_FALSE(IsEngramTable("embed.weight"));
  EXPECT_TRUE(IsRoutedExpert("layers.3.ffn.experts.7.w1.scale"));
  EXPECT_TRUE(IsRoutedExpert("mtp.0.ffn.experts.0.w2.weight"));
  EXPECT_FALSE(IsRoutedExpert("layers.3.ffn.shared_experts.w1.weight"));
}

}  // namespace
}  // namespace deepinfer
