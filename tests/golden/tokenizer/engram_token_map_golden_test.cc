#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/golden/tokenizer/golden_tokenizers.h"
#include "tokenizer/engram_token_map.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// One I64 tensor of a safetensors file.
std::vector<int32_t> ReadInt64Tensor(const fs::path& path, const std::string& name) {
  const std::string bytes = ReadAll(path);
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  const auto header = nlohmann::json::parse(bytes.substr(8, header_size));
  const size_t begin = header[name]["data_offsets"][0];
  const size_t end = header[name]["data_offsets"][1];
  std::vector<int64_t> values((end - begin) / 8);
  std::memcpy(values.data(), bytes.data() + 8 + header_size + begin, end - begin);
  return {values.begin(), values.end()};
}

void ExpectMap(const fs::path& tokenizer_path, const std::vector<int32_t>& expected) {
  const auto tokenizer = Tokenizer::FromFile(tokenizer_path);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const int64_t compressed = *std::max_element(expected.begin(), expected.end()) + 1;
  const auto map =
      BuildEngramTokenMap(*tokenizer, static_cast<int64_t>(expected.size()), compressed);
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(*map, expected);
}

TEST(EngramTokenMapGoldenTest, NanoAgreesWithItsShippedMap) {
  const auto shipped = nlohmann::json::parse(ReadAll(NanoDir() / "engram_hash.json"));
  const auto expected = shipped["token_map"].get<std::vector<int32_t>>();
  ASSERT_EQ(expected.size(), 8192u);
  ExpectMap(NanoDir() / "tokenizer.json", expected);
}

TEST(EngramTokenMapGoldenTest, ToysAgreeWithTheReleaseCode) {
  SKIP_WITHOUT(SharedGoldens(), "toy checkpoints are not part of the tree");
  for (const char* toy : {"toy-a", "toy-b"}) {
    SCOPED_TRACE(toy);
    const fs::path dir = SharedGoldens() / toy;
    ExpectMap(dir / "checkpoint/tokenizer.json",
              ReadInt64Tensor(dir / "engram.safetensors", "token_map"));
  }
}

// The release has V3's 128,000 tokens and 1,280 added ones of its own, each its own key; 99,092
// compressed ids are documented for it. Guards what "strip accents" means: all marks, not only the
// non-spacing ones, or this count is 98,230.
TEST(EngramTokenMapGoldenTest, DeepSeekVocabularyGivesTheReleasesCount) {
  const fs::path path = V3TokenizerPath();
  SKIP_WITHOUT(path, "tools/fetch_v3_tokenizer.sh fetches it, or set DEEPINFER_V3_TOKENIZER");
  const auto tokenizer = Tokenizer::FromFile(path);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  constexpr int64_t kAddedByV3 = 815;
  constexpr int64_t kAddedByRelease = 1280;
  const auto map = BuildEngramTokenMap(*tokenizer, tokenizer->vocab_size(),
                                       99092 - kAddedByRelease + kAddedByV3);
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ((*map)[2], 2);
  EXPECT_EQ(*std::max_element(map->begin(), map->begin() + 128000) + 1, 99092 - kAddedByRelease);
}

}  // namespace
}  // namespace deepinfer
