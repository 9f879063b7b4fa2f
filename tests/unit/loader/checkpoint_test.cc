#include "loader/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/unit/loader/tiny_checkpoint.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Error ErrorOf(const fs::path& dir, const CheckpointOptions& options = {}) {
  auto opened = Checkpoint::Open(dir, options);
  return opened ? Error{ErrorCode::kInternal, "accepted"} : opened.error();
}

std::string ReadBytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class CheckpointTest : public ::testing::Test {
 protected:
  const fs::path& dir() const { return folder_.path(); }
  void RewriteIndex(const json& index) {
    WriteBytes(dir() / "model.safetensors.index.json", index.dump());
  }

  TemporaryFolder folder_;
};

// ---- good checkpoints ----

TEST_F(CheckpointTest, OpensASingleFile) {
  const FileTensors tensors = TinyTensors();
  WriteSingle(dir(), tensors);
  auto opened = Checkpoint::Open(dir());
  ASSERT_TRUE(opened) << opened.error().message;
  const Checkpoint& checkpoint = **opened;
  EXPECT_EQ(checkpoint.dir(), dir());
  EXPECT_EQ(checkpoint.num_shards(), 1u);
  EXPECT_EQ(checkpoint.num_ignored(), 0);
  EXPECT_EQ(checkpoint.config().hidden_size, 32);
  ASSERT_EQ(checkpoint.tensors().size(), tensors.size());
  uint64_t bytes = 0;
  auto expected = tensors.begin();  // sorted by name as well
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    EXPECT_EQ(tensor.name, expected->first);
    EXPECT_EQ(tensor.view.shape, expected->second.shape);
    EXPECT_EQ(tensor.shard, "model.safetensors");
    EXPECT_EQ(checkpoint.Find(tensor.name), &tensor.view);
    bytes += tensor.view.bytes();
    ++expected;
  }
  EXPECT_EQ(checkpoint.total_bytes(), bytes);
  EXPECT_EQ(checkpoint.Find("layers.0"), nullptr);
  EXPECT_EQ(checkpoint.Find(""), nullptr);
  EXPECT_EQ(checkpoint.Find("zzz"), nullptr);
}

TEST_F(CheckpointTest, OpensShardsAndFindsEachTensorInItsOwn) {
  FileTensors tensors = TinyTensors();
  tensors["norm.weight"].bytes.assign(64, '\2');
  const json index = WriteSharded(dir(), tensors, 5);
  auto opened = Checkpoint::Open(dir());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->num_shards(), 5u);
  for (const StoredTensor& tensor : (*opened)->tensors()) {
    EXPECT_EQ(tensor.shard, index["weight_map"][tensor.name].get<std::string>());
  }
  EXPECT_EQ((*opened)->Find("norm.weight")->data[63], std::byte{2});
  EXPECT_EQ((*opened)->Find("head.weight")->data[0], std::byte{0x40});
}

TEST(ShippedCheckpoint, LoadedWeightsAreTheMappedOnes) {
  const fs::path nano = fs::path(DEEPINFER_SOURCE_DIR) / "models/nano";
  const auto mapped = Checkpoint::Open(nano);
  uint64_t done = 0, total = 0;
  const auto loaded = Checkpoint::Open(nano, {.weights_memory = WeightsMemory::kLoad},
                                       [&](std::string_view what, uint64_t now, uint64_t all) {
                                         if (what == "loading weights") done = now, total = all;
                                       });
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_GE(total, (*loaded)->total_bytes());
  EXPECT_EQ(done, total);
  ASSERT_EQ((*loaded)->tensors().size(), (*mapped)->tensors().size());
  for (const StoredTensor& tensor : (*mapped)->tensors()) {
    const TensorView* other = (*loaded)->Find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    ASSERT_EQ(other->bytes(), tensor.view.bytes()) << tensor.name;
    EXPECT_EQ(std::memcmp(other->data, tensor.view.data, other->bytes()), 0) << tensor.name;
  }
}

TEST_F(CheckpointTest, TheIndexWinsOverASingleFileBesideIt) {
  WriteSharded(dir(), TinyTensors(), 2);
  WriteBytes(dir() / "model.safetensors", "stale");
  EXPECT_EQ(ErrorOf(dir()).message, "accepted");
}

TEST_F(CheckpointTest, ReportsProgressToTheEnd) {
  WriteSharded(dir(), TinyTensors(), 3);
  std::map<std::string, std::pair<uint64_t, uint64_t>> last;
  auto opened =
      Checkpoint::Open(dir(), {}, [&](std::string_view what, uint64_t done, uint64_t total) {
        last[std::string(what)] = {done, total};
      });
  ASSERT_TRUE(opened);
  const std::pair<uint64_t, uint64_t> shards(3, 3);
  const std::pair<uint64_t, uint64_t> bytes((*opened)->total_bytes(), (*opened)->total_bytes());
  EXPECT_EQ(last["opening weights"], shards);
  EXPECT_EQ(last["checking weights"], bytes);
}

TEST(ShippedCheckpoint, NanoPassesEveryCheck) {
  auto opened = Checkpoint::Open(fs::path(DEEPINFER_SOURCE_DIR) / "models/nano",
                                 {.weight_check = WeightCheck::kAll});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->tensors().size(), 2292u);
  EXPECT_EQ((*opened)->total_bytes(), 54137550u);
  EXPECT_EQ((*opened)->num_shards(), 4u);
}

TEST(ShippedCheckpoint, ToysPassEveryCheckAndV4IsUnsupported) {
  const fs::path goldens = fs::path(DEEPINFER_SOURCE_DIR) / "../shared/goldens";
  if (!fs::exists(goldens)) GTEST_SKIP() << goldens << " is absent";
  auto toy_a = Checkpoint::Open(goldens / "toy-a/checkpoint");
  ASSERT_TRUE(toy_a) << toy_a.error().message;
  EXPECT_EQ((*toy_a)->num_ignored(), 18) << "vision tower, aligner and image vectors";
  auto toy_b = Checkpoint::Open(goldens / "toy-b/checkpoint");
  ASSERT_TRUE(toy_b) << toy_b.error().message;
  EXPECT_EQ((*toy_b)->num_shards(), 2u);
  const Error v4 = ErrorOf(goldens / "v4-toy/checkpoint");
  EXPECT_EQ(v4.code, ErrorCode::kUnsupported);
  EXPECT_THAT(v4.message, HasSubstr("DeepseekV4ForCausalLM"));
}

// ---- wrong folders ----

TEST_F(CheckpointTest, AFileInPlaceOfTheFolderIsExplained) {
  WriteSingle(dir(), TinyTensors());
  const Error error = ErrorOf(dir() / "model.safetensors");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("is a file; give the folder that holds config.json"));
}

TEST_F(CheckpointTest, MissingFoldersAndFilesAreNamed) {
  EXPECT_EQ(ErrorOf(dir() / "nope").code, ErrorCode::kNotFound);
  EXPECT_THAT(ErrorOf(dir() / "nope").message, HasSubstr("no checkpoint folder"));
  EXPECT_THAT(ErrorOf(dir()).message, HasSubstr("holds no config.json"));
  WriteConfig(dir(), TinyConfigJson());
  EXPECT_EQ(ErrorOf(dir()).code, ErrorCode::kNotFound);
  EXPECT_THAT(ErrorOf(dir()).message,
              HasSubstr("holds neither model.safetensors nor model.safetensors.index.json"));
}

TEST_F(CheckpointTest, ConfigurationErrorsNameTheFolder) {
  WriteSingle(dir(), TinyTensors());
  json config = TinyConfigJson();
  config["text_config"]["hc_mult"] = 0;
  WriteConfig(dir(), config);
  EXPECT_THAT(ErrorOf(dir()).message,
              AllOf(HasSubstr(dir().string()), HasSubstr("text_config.hc_mult is 0")));
  WriteBytes(dir() / "config.json", "{");
  EXPECT_THAT(ErrorOf(dir()).message, HasSubstr("config.json is not valid JSON"));
  fs::remove(dir() / "config.json");
  fs::create_directory(dir() / "config.json");
  EXPECT_THAT(ErrorOf(dir()).message, HasSubstr("is a folder, not a regular file"));
}

// ---- shards and index ----

TEST_F(CheckpointTest, AllMissingShardsAreListed) {
  WriteSharded(dir(), TinyTensors(), 4);
  fs::remove(dir() / ShardName(1, 4));
  fs::remove(dir() / ShardName(3, 4));
  const Error error = ErrorOf(dir());
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, AllOf(HasSubstr("lacks 2 of the 4 weight files"),
                                   HasSubstr(ShardName(1, 4) + ", " + ShardName(3, 4)),
                                   Not(HasSubstr(ShardName(0, 4)))));
}

TEST_F(CheckpointTest, ADanglingLinkCountsAsAMissingShard) {
  WriteSharded(dir(), TinyTensors(), 2);
  fs::remove(dir() / ShardName(0, 2));
  fs::create_symlink("gone", dir() / ShardName(0, 2));
  EXPECT_THAT(ErrorOf(dir()).message, HasSubstr("lacks 1 of the 2 weight files"));
}

TEST_F(CheckpointTest, IndexAndShardsMustAgree) {
  json index = WriteSharded(dir(), TinyTensors(), 2);
  json changed = index;
  changed["weight_map"]["extra.weight"] = ShardName(0, 2);
  RewriteIndex(changed);
  EXPECT_THAT(ErrorOf(dir()).message, HasSubstr("the index puts \"extra.weight\" into " +
                                                ShardName(0, 2) + ", which lacks it"));
  changed = index;
  changed["weight_map"].erase("norm.weight");
  RewriteIndex(changed);
  EXPECT_THAT(ErrorOf(dir()).message,
              AllOf(HasSubstr("norm.weight is in"), HasSubstr("but not in the index")));
  changed = index;
  const std::string real = index["weight_map"]["norm.weight"];
  const std::string other = real == ShardName(0, 2) ? ShardName(1, 2) : ShardName(0, 2);
  changed["weight_map"]["norm.weight"] = other;
  RewriteIndex(changed);
  EXPECT_THAT(ErrorOf(dir()).message,
              HasSubstr("the index puts norm.weight into " + other + ", but it is in " + real));
}

TEST_F(CheckpointTest, ATensorInTwoShardsIsRefused) {
  const FileTensors tensors = TinyTensors();
  WriteSharded(dir(), tensors, 2);
  for (int shard : {0, 1}) {
    FileTensors part;
    for (const auto& [name, tensor] : tensors) part[name] = tensor;
    WriteBytes(dir() / ShardName(shard, 2), SafetensorsBytes(part));
  }
  EXPECT_THAT(ErrorOf(dir()).message, HasSubstr("is in both " + ShardName(0, 2)));
}

TEST_F(CheckpointTest, IndexPathsThatLeaveTheFolderAreRefused) {
  const json index = WriteSharded(dir(), TinyTensors(), 1);
  for (const json& path : {json("../model.safetensors"), json("/etc/passwd"), json(".."), json("."),
                           json(""), json("sub/model.safetensors"), json("a\\b"), json("a\nb"),
                           json(std::string("a\0b", 3)), json(7), json(nullptr)}) {
    json changed = index;
    changed["weight_map"]["norm.weight"] = path;
    RewriteIndex(changed);
    const Error error = ErrorOf(dir());
    EXPECT_EQ(error.code, ErrorCode::kDataLoss);
    EXPECT_THAT(error.message, AllOf(HasSubstr("weight_map puts \"norm.weight\" into"),
                                     HasSubstr("it must be the name of a file beside the index")));
  }
}

TEST_F(CheckpointTest, BrokenIndexesAreRefused) {
  WriteSharded(dir(), TinyTensors(), 1);
  for (const char* text :
       {"", "[]", "{}", "{\"weight_map\": []}", "{\"weight_map\": {}}", "null"}) {
    WriteBytes(dir() / "model.safetensors.index.json", text);
    EXPECT_THAT(ErrorOf(dir()).message, HasSubstr("model.safetensors.index.json")) << text;
    EXPECT_EQ(ErrorOf(dir()).code, ErrorCode::kDataLoss) << text;
  }
}

TEST_F(CheckpointTest, AShardThatIsAFolderIsRefused) {
  WriteSharded(dir(), TinyTensors(), 2);
  fs::remove(dir() / ShardName(1, 2));
  fs::create_directory(dir() / ShardName(1, 2));
  EXPECT_THAT(ErrorOf(dir()).message, HasSubstr("is a folder, not a regular file"));
}

// ---- damaged weights ----

TEST_F(CheckpointTest, TruncationAtEveryInterestingOffsetIsRefused) {
  WriteSingle(dir(), TinyTensors());
  const fs::path path = dir() / "model.safetensors";
  const std::string whole = ReadBytes(path);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, whole.data(), sizeof header_bytes);
  const size_t data = 8 + header_bytes;
  for (size_t length :
       {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, data / 2, data - 1, data, data + 1,
        data + 4096, (data + whole.size()) / 2, whole.size() - 4096, whole.size() - 1}) {
    fs::resize_file(path, length);
    const Error error = ErrorOf(dir());
    EXPECT_EQ(error.code, ErrorCode::kDataLoss) << length << " " << error.message;
    EXPECT_THAT(error.message, HasSubstr("model.safetensors"));
    WriteBytes(path, whole);
  }
  EXPECT_EQ(ErrorOf(dir()).message, "accepted");
}

TEST_F(CheckpointTest, TrailingBytesAreRefused) {
  WriteSingle(dir(), TinyTensors());
  std::ofstream(dir() / "model.safetensors", std::ios::app) << "more";
  EXPECT_THAT(ErrorOf(dir()).message, HasSubstr("4 data bytes after the last tensor"));
}

TEST_F(CheckpointTest, FlippedHeaderBytesNeverCrash) {
  WriteSingle(dir(), TinyTensors());
  const fs::path path = dir() / "model.safetensors";
  const std::string whole = ReadBytes(path);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, whole.data(), sizeof header_bytes);
  size_t accepted = 0;
  for (size_t i = 0; i < 8 + header_bytes; i += 1 + i / 40) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x04);
    WriteBytes(path, flipped);
    accepted += ErrorOf(dir()).message == "accepted";
  }
  // Only the contents of __metadata__ may change unnoticed.
  EXPECT_LE(accepted, 24u);
}

TEST_F(CheckpointTest, AConfigurationThatDoesNotFitTheTensorsIsRefusedWhole) {
  WriteSingle(dir(), TinyTensors());
  json config = TinyConfigJson();
  config["text_config"]["hidden_size"] = 64;
  WriteConfig(dir(), config);
  const Error error = ErrorOf(dir());
  EXPECT_EQ(error.code, ErrorCode::kDataLoss);
  EXPECT_THAT(error.message, AllOf(HasSubstr(dir().string()),
                                   HasSubstr("embed.weight is BF16 [48, 32]; it must "
                                             "be BF16 [48, 64]"),
                                   HasSubstr("more")));
}

TEST_F(CheckpointTest, PlantedNaNsAreFoundInEveryKindOfTensor) {
  const FileTensors tensors = TinyTensors();
  for (const auto& [name, bytes] : std::map<std::string, std::string>{
           {"embed.weight", "\xc0\x7f"},                             // BF16
           {"layers.1.hc_attn_fn", std::string("\0\0\x80\x7f", 4)},  // F32 infinity
           {"layers.0.attn.wq_a.weight", "\x7f"},                    // E4M3
           {"layers.2.ffn.experts.1.w2.scale", "\xff"},              // E8M0
           {"layers.0.engram.embed.weight", "\xff"},
           {"mtp.0.confidence_head.proj.weight", "\x80\xff"}}) {
    FileTensors broken = tensors;
    std::string& data = broken.at(name).bytes;
    data.replace(data.size() - bytes.size(), bytes.size(), bytes);
    WriteSingle(dir(), broken);
    const Error error = ErrorOf(dir());
    EXPECT_EQ(error.code, ErrorCode::kDataLoss);
    EXPECT_THAT(error.message,
                HasSubstr(fmt::format("tensor {} (in model.safetensors) has", name)));
    EXPECT_THAT(error.message,
                HasSubstr(fmt::format("at element {} of", data.size() / bytes.size() - 1)));
    EXPECT_EQ(ErrorOf(dir(), {.weight_check = WeightCheck::kNone}).message, "accepted");
  }
}

}  // namespace
}  // namespace deepinfer
