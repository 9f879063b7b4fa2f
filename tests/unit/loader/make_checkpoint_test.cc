#include "loader/make_checkpoint.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/numeric.h"
#include "base/random.h"
#include "config/engram_primes.h"
#include "loader/checkpoint.h"
#include "loader/checkpoint_design.h"
#include "loader/checkpoint_writer.h"
#include "loader/random_weights.h"
#include "tests/unit/loader/hub_test_repository.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// A tokenizer.json in outline: two plain tokens and three added ones.
constexpr char kTokenizer[] = R"({
  "added_tokens": [{"id": 2, "content": "<｜begin▁of▁sentence｜>", "special": true},
                   {"id": 3, "content": "<｜end▁of▁sentence｜>", "special": true},
                   {"id": 5, "content": "<｜System｜>", "special": true}],
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<｜begin▁of▁sentence｜>": 2}, "merges": []}
})";

CheckpointDesign SmallDesign() {
  CheckpointDesign design;
  design.settings = {{"vocab_size", "64"},
                     {"dspark_noise_token_id", "63"},
                     {"n_routed_experts", "4"},
                     {"num_experts_per_tok", "2"}};
  return design;
}

MakeCheckpointOptions SmallOptions(const fs::path& folder) {
  MakeCheckpointOptions options;
  options.folder = folder;
  options.config_json = DesignConfig(SmallDesign()).value();
  options.tokenizer_json = PadTokenizer(kTokenizer, 64).value();
  options.engram_compressed_vocab_size = 60;
  return options;
}

std::map<std::string, std::string> FilesOf(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = ReadFile(entry.path()).value();
  }
  return files;
}

ModelConfig Config(const CheckpointDesign& design) {
  const auto text = DesignConfig(design);
  EXPECT_TRUE(text) << text.error().message;
  return ParseModelConfig(text.value()).value();
}

TEST(EngramPrimesTest, ReleaseTablesHaveTheirRows) {
  const auto primes = EngramPrimes(48, 16000000);
  ASSERT_TRUE(primes);
  EXPECT_EQ(primes->front(), 16000057);
  EXPECT_EQ((*primes)[24], 16000477);
  EXPECT_EQ(primes->back(), 16000889);
  EXPECT_THAT(*EngramTableRows(2, 24, 16000000), testing::ElementsAre(384006168, 384016682));
  EXPECT_THAT(*EngramTableRows(2, 12, 6000), testing::ElementsAre(72626, 73828));  // nano
  EXPECT_THAT(*EngramPrimes(4, 0), testing::ElementsAre(2, 3, 5, 7));
  EXPECT_FALSE(EngramPrimes(-1, 5));
  EXPECT_FALSE(EngramPrimes(65537, 5));
  EXPECT_FALSE(EngramPrimes(1, int64_t{1} << 32));
}

TEST(RandomTest, BitsAreBalancedAndKeysDiffer) {
  int ones = 0;
  for (uint64_t i = 0; i < 10000; ++i) ones += std::popcount(RandomBits(RandomKey(1, "a"), i));
  EXPECT_NEAR(ones, 320000, 2000);  // 5 deviations are 2000
  EXPECT_NE(RandomKey(1, "a"), RandomKey(2, "a"));
  EXPECT_NE(RandomKey(1, "a"), RandomKey(1, "b"));
  EXPECT_NE(RandomKey(1, "ab"), RandomKey(1, "ba"));
}

TEST(DesignConfigTest, ThreeReleaseLayersHaveRatiosZeroTwoOne) {
  CheckpointDesign design;
  design.preset = "release";
  design.layers = 3;
  design.settings = {{"engram_vocab_size", "1000"}};
  const ModelConfig config = Config(design);
  EXPECT_EQ(config.hidden_size, 5120);
  EXPECT_THAT(config.compress_ratios, testing::ElementsAre(0, 2, 1, 0, 0, 0));
  EXPECT_THAT(config.kv_source_layers, testing::ElementsAre(1, 2));
  EXPECT_THAT(config.index_source_layers, testing::ElementsAre(1, 2));
  EXPECT_EQ(config.candidate_source_layer, 2);
  EXPECT_THAT(config.engram_layers, testing::ElementsAre(1));
  EXPECT_THAT(config.draft_target_layers, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(config.engram_num_embeddings, *EngramTableRows(1, 24, 1000));
}

TEST(DesignConfigTest, TheReleaseIsItsOwnArrangement) {
  const std::string path =
      std::string(DEEPINFER_SOURCE_DIR) + "/tests/golden/data/release-config.json";
  Json expected = Json::parse(ReadFile(path).value());
  expected.erase("vision_config");
  expected["text_config"]["engram_compressed_vocab_size"] = 129280;  // until a tokenizer is known
  CheckpointDesign design;
  design.preset = "release";
  EXPECT_EQ(Json::parse(DesignConfig(design).value()), expected);
  design.layers = 40;
  EXPECT_EQ(Json::parse(DesignConfig(design).value()), expected);
}

TEST(DesignConfigTest, EveryNumberOfLayersAndStagesIsAccepted) {
  for (const char* preset : {"release", "mid", "tiny"}) {
    for (int layers = 3; layers <= 64; ++layers) {
      CheckpointDesign design;
      design.preset = preset;
      design.layers = layers;
      design.draft_stages = layers % 4;
      design.settings = {{"engram_vocab_size", "100"}};
      EXPECT_EQ(Config(design).num_layers, layers);
    }
  }
}

TEST(DesignConfigTest, BadChoicesAreNamed) {
  const auto message = [](auto change) {
    CheckpointDesign design;
    change(design);
    const auto text = DesignConfig(design);
    EXPECT_FALSE(text);
    return text ? std::string() : text.error().message;
  };
  EXPECT_THAT(message([](auto& d) { d.preset = "huge"; }), HasSubstr("\"huge\""));
  EXPECT_THAT(message([](auto& d) { d.layers = 2; }), HasSubstr("layers is 2"));
  EXPECT_THAT(message([](auto& d) { d.draft_stages = 17; }), HasSubstr("17"));
  EXPECT_THAT(message([](auto& d) { d.settings["hiden_size"] = "64"; }), HasSubstr("hiden_size"));
  EXPECT_THAT(message([](auto& d) { d.settings["hidden_size"] = "6 4"; }), HasSubstr("not JSON"));
  EXPECT_THAT(message([](auto& d) { d.settings["hidden_size"] = "100"; }),
              HasSubstr("hidden_size"));
  EXPECT_THAT(message([](auto& d) { d.settings["num_hidden_layers"] = "5"; }),
              HasSubstr("num_hidden_layers"));
  EXPECT_THAT(message([](auto& d) { d.settings["engram_n_heads"] = "100000"; }),
              HasSubstr("engram_n_heads"));
  EXPECT_THAT(message([](auto& d) { d.base_config = "{}"; }), HasSubstr("architectures"));
}

TEST(DesignConfigTest, AnOwnConfigurationCanBeTheStart) {
  CheckpointDesign design;
  design.base_config =
      ReadFile(std::string(DEEPINFER_SOURCE_DIR) + "/models/nano/config.json").value();
  const Json nano = Json::parse(design.base_config);
  Json made = Json::parse(DesignConfig(design).value());
  EXPECT_EQ(made["text_config"]["engram_num_embeddings"],
            nano["text_config"]["engram_num_embeddings"]);
  made["text_config"]["engram_compressed_vocab_size"] = 6835;
  EXPECT_EQ(made, nano);
}

TEST(PadTokenizerTest, EveryIdGetsAnEntryAndNothingElseChanges) {
  const Json before = Json::parse(kTokenizer);
  Json after = Json::parse(PadTokenizer(kTokenizer, 16).value());
  std::set<int64_t> ids = {3, 5};
  for (const auto& [token, id] : after["model"]["vocab"].items()) ids.insert(id.get<int64_t>());
  EXPECT_EQ(ids.size(), 16u);
  EXPECT_EQ(*ids.rbegin(), 15);
  for (int id : {4, 6, 15}) {
    EXPECT_EQ(after["model"]["vocab"].value(fmt::format("<unused_{}>", id), -1), id);
  }
  after["model"]["vocab"] = before["model"]["vocab"];
  EXPECT_EQ(after, before);
  EXPECT_THAT(PadTokenizer(kTokenizer, 5).error().message, HasSubstr("with id 5"));
  EXPECT_FALSE(PadTokenizer("{}", 16));
  EXPECT_FALSE(PadTokenizer("nonsense", 16));
}

TEST(RandomTensorTest, EveryTensorOfEveryPresetHasARule) {
  for (const char* preset : {"release", "mid", "tiny"}) {
    CheckpointDesign design;
    design.preset = preset;
    std::vector<ExpectedTensor> tensors = ExpectedTensors(Config(design));
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].name.find("experts.1") != std::string::npos) continue;  // as experts.0
      const bool scale = tensors[i].dtype == DType::kF8E8M0;
      const auto made = RandomTensor::Create(tensors[i], scale ? &tensors[i - 1] : nullptr, 0);
      ASSERT_TRUE(made) << made.error().message;
    }
  }
}

struct Moments {
  double mean = 0;
  double rms = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
  }
  const auto n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n)};
}

std::vector<float> DequantisedValues(const Checkpoint& checkpoint, const std::string& name) {
  const TensorView& weight = *checkpoint.Find(name + ".weight");
  const TensorView* scale = checkpoint.Find(name + ".scale");
  std::vector<float> values;
  for (int64_t row = 0; row < weight.shape[0]; ++row) {
    for (int64_t column = 0; column < weight.shape[1]; ++column) {
      const int64_t i = row * weight.shape[1] + column;
      if (weight.dtype == DType::kBF16) {
        values.push_back(ToFloat(weight.as<bf16>()[i]));
      } else if (weight.dtype == DType::kF8E4M3) {
        const bool per_row = scale->shape[0] == weight.shape[0];
        const int64_t s = (per_row ? row : row / 32) * scale->shape[1] + column / 32;
        values.push_back(E4M3ToFloat(weight.as<uint8_t>()[i]) *
                         E8M0ToFloat(scale->as<uint8_t>()[s]));
      } else {
        const float s = E8M0ToFloat(scale->as<uint8_t>()[row * scale->shape[1] + column / 16]);
        values.push_back(E2M1ToFloat(weight.as<uint8_t>()[i] & 15) * s);
        values.push_back(E2M1ToFloat(weight.as<uint8_t>()[i] >> 4) * s);
      }
    }
  }
  return values;
}

TEST(MakeCheckpointTest, RoundTripsThroughTheLoaderWithTheReleasesNorms) {
  ScratchFolder scratch;
  MakeCheckpointOptions options = SmallOptions(scratch.path() / "made");
  uint64_t done = 0, total = 1;
  const Status status = MakeCheckpoint(options, [&](std::string_view, uint64_t d, uint64_t t) {
    done = d;
    total = t;
  });
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(done, total);
  const auto opened = Checkpoint::Open(options.folder, {.weight_check = WeightCheck::kAll});
  ASSERT_TRUE(opened) << opened.error().message;
  const Checkpoint& checkpoint = **opened;
  EXPECT_EQ(checkpoint.total_bytes(), total);
  EXPECT_EQ(checkpoint.config().engram_compressed_vocab_size, 60);
  EXPECT_EQ(checkpoint.config().bos_token, 2);
  EXPECT_EQ(checkpoint.config().eos_token, 3);
  EXPECT_EQ(checkpoint.config().draft_noise_token, 5);

  const auto expect = [&](const std::string& name, double mean, double rms, double tolerance) {
    const Moments moments = MomentsOf(DequantisedValues(checkpoint, name));
    EXPECT_NEAR(moments.mean, mean, tolerance * rms) << name;
    EXPECT_NEAR(moments.rms, rms, tolerance * rms) << name;
  };
  // 4096 to 16384 values each: 5 deviations of the mean are below 8 % of the rms; the random
  // scales of 16 FP8 tiles move the rms by up to 30 %.
  expect("embed", 0, 0.12, 0.08);
  expect("head", 0, 3 / std::sqrt(128), 0.08);
  expect("layers.0.attn.wq_a", 0, 1.6 / std::sqrt(128), 0.45);
  expect("layers.0.ffn.experts.0.w1", 0, 1.5 / std::sqrt(128), 0.15);
  expect("layers.0.ffn.experts.3.w2", 0, 0.15 / std::sqrt(64), 0.15);
  expect("layers.1.engram.embed", 0, 0.15, 0.08);
  expect("layers.2.attn.compressor.wgate", 0, 40 / std::sqrt(128), 0.1);
  const TensorView& norm = *checkpoint.Find("layers.0.attn_norm.weight");
  for (int64_t i = 0; i < norm.elements(); ++i) {
    EXPECT_NEAR(ToFloat(norm.as<bf16>()[i]), 0.025, 0.012);
  }
  // Scales differ between tiles.
  const TensorView& scale = *checkpoint.Find("layers.0.attn.wq_b.scale");
  std::set<uint8_t> scales(scale.as<uint8_t>(), scale.as<uint8_t>() + scale.elements());
  EXPECT_EQ(scales.size(), 3u);
  // The mHC mixing matrix leans to the identity.
  std::vector<float> base(24);
  std::memcpy(base.data(), checkpoint.Find("layers.0.hc_attn_base")->data, 96);
  EXPECT_GT((base[8] + base[13] + base[18] + base[23]) / 4, 0.5f);

  const Json tokenizer_config =
      Json::parse(ReadFile(options.folder / "tokenizer_config.json").value());
  EXPECT_EQ(tokenizer_config["bos_token"], "<｜begin▁of▁sentence｜>");
  EXPECT_EQ(
      Json::parse(ReadFile(options.folder / "generation_config.json").value())["eos_token_id"], 3);
}

TEST(MakeCheckpointTest, BytesDependOnTheSeedAloneAndNotOnThreads) {
  ScratchFolder scratch;
  const auto make = [&](const char* name, uint64_t seed, int threads, uint64_t shard_bytes) {
    MakeCheckpointOptions options = SmallOptions(scratch.path() / name);
    options.seed = seed;
    options.threads = threads;
    options.shard_bytes = shard_bytes;
    EXPECT_TRUE(MakeCheckpoint(options, {}));
    return FilesOf(options.folder);
  };
  const auto one = make("one", 7, 1, uint64_t{1} << 40);
  EXPECT_EQ(one, make("two", 7, 5, uint64_t{1} << 40));
  EXPECT_NE(one, make("three", 8, 1, uint64_t{1} << 40));
  // Cut differently, the tensors stay the same.
  make("shards", 7, 2, uint64_t{1} << 20);
  const auto whole = Checkpoint::Open(scratch.path() / "one").value();
  const auto parts = Checkpoint::Open(scratch.path() / "shards").value();
  EXPECT_EQ(whole->num_shards(), 1u);
  EXPECT_GE(parts->num_shards(), 2u);
  for (const StoredTensor& tensor : whole->tensors()) {
    const TensorView* other = parts->Find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(std::memcmp(other->data, tensor.view.data, tensor.view.bytes()), 0) << tensor.name;
  }
}

TEST(MakeCheckpointTest, PartsOfATensorAgreeWithTheWhole) {
  const std::vector<std::pair<ExpectedTensor, ExpectedTensor>> pairs = {
      {{"layers.0.attn.wq_a.weight", DType::kF8E4M3, {40, 96}}, {}},
      {{"layers.0.ffn.experts.0.w1.weight", DType::kI8, {40, 96}}, {}},
      {{"embed.weight", DType::kBF16, {40, 48}}, {}},
      {{"layers.0.hc_attn_fn", DType::kF32, {24, 40}}, {}},
      {{"layers.0.engram.embed.scale", DType::kF8E8M0, {480, 8}},
       {"layers.0.engram.embed.weight", DType::kF8E4M3, {480, 256}}}};
  for (const auto& [tensor, weight] : pairs) {
    const auto made =
        RandomTensor::Create(tensor, weight.name.empty() ? nullptr : &weight, 3).value();
    std::vector<std::byte> whole(3840), part(3840 - 1280);
    made.Fill(0, whole);
    made.Fill(1280, part);
    EXPECT_EQ(std::memcmp(whole.data() + 1280, part.data(), part.size()), 0) << tensor.name;
  }
}

TEST(MakeCheckpointTest, ATargetInUseIsRefusedAndAnEmptyOneFilled) {
  ScratchFolder scratch;
  MakeCheckpointOptions options = SmallOptions(scratch.path() / "made");
  fs::create_directories(options.folder);
  ASSERT_TRUE(WriteFileAtomically(options.folder / "mine", "x"));
  EXPECT_THAT(MakeCheckpoint(options, {}).error().message, HasSubstr("not an empty folder"));
  fs::remove(options.folder / "mine");
  EXPECT_TRUE(MakeCheckpoint(options, {}));
  options.folder = scratch.path() / "missing" / "made";
  EXPECT_EQ(MakeCheckpoint(options, {}).error().code, ErrorCode::kNotFound);
  options.folder = scratch.path() / "other/";
  EXPECT_TRUE(MakeCheckpoint(options, {}));
  EXPECT_TRUE(fs::exists(scratch.path() / "other" / "model.safetensors"));
}

TEST(MakeCheckpointTest, BadOptionsLeaveNothing) {
  ScratchFolder scratch;
  const auto expect = [&](const char* hint, auto change) {
    MakeCheckpointOptions options = SmallOptions(scratch.path() / "made");
    change(options);
    const Status status = MakeCheckpoint(options, {});
    ASSERT_FALSE(status) << hint;
    EXPECT_THAT(status.error().message, HasSubstr(hint));
  };
  expect("threads is 0", [](auto& o) { o.threads = 0; });
  expect("shard_bytes is 5", [](auto& o) { o.shard_bytes = 5; });
  expect("engram_compressed_vocab_size", [](auto& o) { o.engram_compressed_vocab_size = 0; });
  expect("config.json", [](auto& o) { o.config_json = "{}"; });
  expect("tokenizer.json", [](auto& o) { o.tokenizer_json = "["; });
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

}  // namespace
}  // namespace deepinfer
