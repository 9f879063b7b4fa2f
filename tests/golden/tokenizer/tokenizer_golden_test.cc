#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/golden/tokenizer/golden_tokenizers.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

// Every line of a golden file: ids, decoding, exact round trip, and decoding one id at a time.
void ExpectGoldens(const fs::path& tokenizer_path, const std::string& name, size_t lines) {
  const auto tokenizer = Tokenizer::FromFile(tokenizer_path);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::ifstream file(SourceDir() / "tests/golden/data/tokenizer" / name);
  std::string line;
  size_t count = 0;
  while (std::getline(file, line)) {
    const auto golden = nlohmann::json::parse(line);
    SCOPED_TRACE(line);
    ++count;
    const auto text = golden["text"].get<std::string>();
    const auto ids = tokenizer->Encode(text, SpecialTokens::kParse);
    EXPECT_EQ(ids, golden["ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(tokenizer->Decode(ids), golden["decoded"].get<std::string>());
    EXPECT_EQ(tokenizer->DecodeBytes(ids), text);
    EXPECT_EQ(tokenizer->DecodeBytes(tokenizer->Encode(text, SpecialTokens::kAsText)), text);
    Detokenizer detokenizer(*tokenizer);
    std::string streamed;
    for (const int32_t id : ids) streamed += detokenizer.Push(id);
    EXPECT_EQ(streamed + detokenizer.Finish(), golden["decoded"].get<std::string>());
  }
  EXPECT_EQ(count, lines);
}

TEST(TokenizerGoldenTest, NanoAgreesWithTheGoldenIdsAndTexts) {
  ExpectGoldens(NanoDir() / "tokenizer.json", "nano.jsonl", 462);
}

TEST(TokenizerGoldenTest, ToyAgreesWithTheGoldenIdsAndTexts) {
  const fs::path path = SharedGoldens() / "toy-a/checkpoint/tokenizer.json";
  SKIP_WITHOUT(path, "toy checkpoints are not part of the tree");
  ExpectGoldens(path, "toy-a.jsonl", 462);
}

TEST(TokenizerGoldenTest, DeepSeekV3AgreesWithTheGoldenIdsAndTexts) {
  const fs::path path = V3TokenizerPath();
  SKIP_WITHOUT(path, "tools/fetch_v3_tokenizer.sh fetches it, or set DEEPINFER_V3_TOKENIZER");
  ExpectGoldens(path, "v3.jsonl", 462);
}

}  // namespace
}  // namespace deepinfer
