// Engram's constants and hashes against the release's code, for every configuration at hand.
#include <fstream>
#include <numeric>

#include "config/model_config.h"
#include "loader/safetensors.h"
#include "model/v41/engram_hash.h"
#include "tests/golden/units/units_testing.h"

namespace deepinfer::golden {
namespace {

using model::v41::EngramHash;
using model::v41::kDeadToken;

// Rows [positions, tables, columns] of compressed ids of which the dead ones are kDeadToken.
std::vector<int64_t> HashRows(const EngramHash& hash, const ModelConfig& config,
                              const std::vector<int32_t>& compressed) {
  const int64_t tables = std::ssize(config.engram_layers), columns = config.engram_columns();
  std::vector<int64_t> rows(std::ssize(compressed) * tables * columns);
  for (int64_t p = 0; p < std::ssize(compressed); ++p) {
    std::vector<int32_t> recent;
    for (int64_t k = 0; k < config.engram_max_ngram; ++k) {
      recent.push_back(p - k < 0 ? kDeadToken : compressed[p - k]);
    }
    for (int64_t t = 0; t < tables; ++t) {
      hash.Rows(static_cast<int>(t), recent, rows.data() + (p * tables + t) * columns);
    }
  }
  return rows;
}

template <typename Accessor>
std::vector<int64_t> Joined(const ModelConfig& config, Accessor accessor) {
  std::vector<int64_t> out;
  for (size_t t = 0; t < config.engram_layers.size(); ++t) {
    const std::vector<int64_t>& part = accessor(static_cast<int>(t));
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

void ExpectConstants(const EngramHash& hash, const ModelConfig& config,
                     const std::vector<int64_t>& multipliers, const std::vector<int64_t>& primes) {
  EXPECT_EQ(Joined(config, [&](int t) -> auto& { return hash.multipliers(t); }), multipliers);
  EXPECT_EQ(Joined(config, [&](int t) -> auto& { return hash.primes(t); }), primes);
}

class ReleaseEngram : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.vocab_size = config_.engram_compressed_vocab_size = 99092;
    config_.engram_layers = {1, 14};
    config_.engram_num_embeddings = {384006168, 384016682};
    config_.engram_max_ngram = 4;
    config_.engram_vocab_size = 16000000;
    config_.engram_heads = 8;
    config_.engram_head_dim = 256;
    config_.engram_pad_token = 2;
    std::vector<int32_t> identity(config_.vocab_size);
    std::iota(identity.begin(), identity.end(), 0);
    Result<EngramHash> hash = EngramHash::Create(config_, identity);
    ASSERT_TRUE(hash) << hash.error().message;
    hash_ = std::move(*hash);
    for (const int64_t id : Units().Raw<int64_t>("engram.compressed_ids")) {
      ids_.push_back(static_cast<int32_t>(id));
    }
  }

  ModelConfig config_;
  EngramHash hash_;
  std::vector<int32_t> ids_;
};

TEST_F(ReleaseEngram, MultipliersAndPrimesAreTheReleases) {
  ExpectConstants(hash_, config_, Units().Raw<int64_t>("engram.multipliers"),
                  Units().Raw<int64_t>("engram.primes"));
}

TEST_F(ReleaseEngram, RowsAreTheReleases) {
  EXPECT_EQ(HashRows(hash_, config_, ids_), Units().Raw<int64_t>("engram.rows"));
}

TEST_F(ReleaseEngram, NothingReachesAcrossADeadToken) {
  const std::vector<uint8_t> live = UnitBytes("engram.live");
  for (size_t p = 0; p < ids_.size(); ++p) {
    if (live[p] == 0) ids_[p] = kDeadToken;
  }
  EXPECT_EQ(HashRows(hash_, config_, ids_), Units().Raw<int64_t>("engram.rows_masked"));
}

ModelConfig ConfigOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Result<ModelConfig> config = ParseModelConfig(text);
  if (!config) throw std::runtime_error(path.string() + ": " + config.error().message);
  return *config;
}

std::vector<int32_t> Narrow(const std::vector<int64_t>& wide) { return {wide.begin(), wide.end()}; }

class ToyEngram : public ::testing::TestWithParam<const char*> {};

TEST_P(ToyEngram, ConstantsAndRowsAreTheReleaseCodes) {
  const std::filesystem::path folder = ToysDir() / GetParam();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "golden folder " << folder << " is absent";
  const ModelConfig config = ConfigOf(folder / "checkpoint/config.json");
  const GoldenFile golden(folder / "engram.safetensors");
  const Result<EngramHash> hash =
      EngramHash::Create(config, Narrow(golden.Raw<int64_t>("token_map")));
  ASSERT_TRUE(hash) << hash.error().message;
  ExpectConstants(*hash, config, golden.Raw<int64_t>("multipliers"), golden.Raw<int64_t>("primes"));

  const GoldenFile prompts(folder / "prompts.safetensors");
  for (const std::string name : {"p3", "p33", "p130"}) {
    SCOPED_TRACE(name);
    std::vector<int32_t> ids;
    for (const double id : Values(prompts.View(name))) {
      ids.push_back(hash->Compress(static_cast<int32_t>(id)));
    }
    EXPECT_EQ(HashRows(*hash, config, ids), golden.Raw<int64_t>("hash." + name));
  }
  const std::vector<uint8_t> is_image = golden.Raw<uint8_t>("span.is_image");
  std::vector<int32_t> span = Narrow(golden.Raw<int64_t>("span.ids"));
  for (size_t p = 0; p < span.size(); ++p) {
    span[p] = is_image[p] != 0 ? kDeadToken : hash->Compress(span[p]);
  }
  EXPECT_EQ(HashRows(*hash, config, span), golden.Raw<int64_t>("span.hash"));
}

INSTANTIATE_TEST_SUITE_P(Toys, ToyEngram, ::testing::Values("toy-a", "toy-b"),
                         [](const auto& info) { return info.param[4] == 'a' ? "a" : "b"; });

// All numbers of a JSON array of (nested) arrays of integers under `key`, in order.
std::vector<int64_t> NumbersUnder(const std::string& json, const std::string& key) {
  std::vector<int64_t> out;
  size_t at = json.find('[', json.find('"' + key + '"'));
  for (int depth = 0; at < json.size(); ++at) {
    if (json[at] == '[') ++depth;
    if (json[at] == ']' && --depth == 0) break;
    if (json[at] >= '0' && json[at] <= '9') {
      size_t used = 0;
      out.push_back(std::stoll(json.substr(at, 24), &used));
      at += used - 1;
    }
  }
  return out;
}

TEST(NanoEngram, ConstantsAreThoseShippedWithTheCheckpoint) {
  const std::filesystem::path nano = std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano";
  const ModelConfig config = ConfigOf(nano / "config.json");
  std::ifstream file(nano / "engram_hash.json");
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  const Result<EngramHash> hash =
      EngramHash::Create(config, Narrow(NumbersUnder(json, "token_map")));
  ASSERT_TRUE(hash) << hash.error().message;
  EXPECT_EQ(config.engram_num_embeddings, NumbersUnder(json, "num_embeddings"));
  ExpectConstants(*hash, config, NumbersUnder(json, "multipliers"), NumbersUnder(json, "primes"));
}

}  // namespace
}  // namespace deepinfer::golden
