#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/tokenizer/tiny_tokenizer.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Merges kMerges = {
    {"t", "h"}, {"th", "e"}, {" ", "the"}, {"\xe4", "\xb8"}, {"\xe4\xb8", "\xad"}};
constexpr int32_t kThe = 257;
constexpr int32_t kSpaceThe = 258;
constexpr int32_t kHalfCharacter = 259;
constexpr int32_t kFirstAdded = 261;

std::string RandomBytes(std::mt19937& random, size_t max_size) {
  std::string bytes(random() % max_size, '\0');
  for (char& c : bytes) {
    // Half of them ASCII and pieces of the tokens, so that merges and added tokens occur.
    static constexpr std::string_view kFrequent = "the <think>\xe4\xb8\xad\n\n12";
    c = static_cast<char>(random() % 2 ? random() % 256 : kFrequent[random() % kFrequent.size()]);
  }
  return bytes;
}

TEST(TokenizerTest, AnyBytesComeBackExactly) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(
      kMerges, {AddedTokenJson(kFirstAdded, "<think>", false), AddedTokenJson(262, "e\n", true)}));
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    const std::string bytes = RandomBytes(random, 60);
    for (const auto specials : {SpecialTokens::kParse, SpecialTokens::kAsText}) {
      const auto ids = tokenizer.Encode(bytes, specials);
      ASSERT_EQ(tokenizer.DecodeBytes(ids), bytes);
      ASSERT_EQ(tokenizer.Decode(ids), RepairUtf8(bytes));
    }
  }
}

TEST(TokenizerTest, BothFormsOfMergesGiveTheSameIds) {
  auto json = TinyTokenizerJson(kMerges);
  const Tokenizer pairs = LoadTokenizer(json);
  for (auto& merge : json["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const Tokenizer strings = LoadTokenizer(json);
  for (const Tokenizer& tokenizer : {pairs, strings}) {
    EXPECT_THAT(tokenizer.Encode("the the中", SpecialTokens::kParse),
                ElementsAre(kThe, kSpaceThe, 260));
  }
}

TEST(TokenizerTest, TablesMayStandInAnyOrder) {
  // Names sort before "model" and "merges" before "vocab" in nlohmann's output; here all reversed.
  const auto json = TinyTokenizerJson(kMerges, {AddedTokenJson(kFirstAdded, "<x>", true)});
  const std::string reversed = R"({"model":{"merges":)" + json["model"]["merges"].dump() +
                               R"(,"vocab":)" + json["model"]["vocab"].dump() +
                               R"(,"type":"BPE"},"decoder":{"type":"ByteLevel"},"pre_tokenizer":)" +
                               json["pre_tokenizer"].dump() + R"(,"added_tokens":)" +
                               json["added_tokens"].dump() + "}";
  const auto tokenizer = Tokenizer::FromJson(reversed);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->Encode("the<x>", SpecialTokens::kParse), ElementsAre(kThe, kFirstAdded));
}

TEST(TokenizerTest, TheLeftmostLongestAddedTokenWins) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(
      {}, {AddedTokenJson(300, "<a>", true), AddedTokenJson(301, "<a>b", true),
           AddedTokenJson(302, "b<a>bc", true), AddedTokenJson(303, "a>", true)}));
  EXPECT_THAT(tokenizer.Encode("<a>", SpecialTokens::kParse), ElementsAre(300));
  EXPECT_THAT(tokenizer.Encode("<a>b<a>bc", SpecialTokens::kParse), ElementsAre(301, 301, 'c'));
  EXPECT_THAT(tokenizer.Encode("xb<a>bc", SpecialTokens::kParse), ElementsAre('x', 302));
  EXPECT_THAT(tokenizer.Encode("b<a>a>", SpecialTokens::kParse), ElementsAre('b', 300, 303));
  EXPECT_THAT(tokenizer.Encode("<a", SpecialTokens::kParse), ElementsAre('<', 'a'));
}

TEST(TokenizerTest, NormalizedAddedTokensOnlyMatchInWhatTheOthersLeave) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(
      {}, {AddedTokenJson(300, "ab", false, true), AddedTokenJson(301, "bc", true, false)}));
  EXPECT_THAT(tokenizer.Encode("abc", SpecialTokens::kParse), ElementsAre('a', 301));
  EXPECT_THAT(tokenizer.Encode("abbc", SpecialTokens::kParse), ElementsAre(300, 301));
}

TEST(TokenizerTest, TextAroundAnAddedTokenIsCutOnItsOwn) {
  // The blank before an added token has no word behind it, and no merge reaches across the token.
  const Tokenizer tokenizer =
      LoadTokenizer(TinyTokenizerJson(kMerges, {AddedTokenJson(300, "<x>", true)}));
  EXPECT_THAT(tokenizer.Encode("the <x>the", SpecialTokens::kParse),
              ElementsAre(kThe, ' ', 300, kThe));
}

TEST(TokenizerTest, AsTextForgesNoAddedToken) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(
      kMerges, {AddedTokenJson(300, "<x>", true), AddedTokenJson(301, "<y>", false, true)}));
  EXPECT_THAT(tokenizer.Encode("<x><y>", SpecialTokens::kAsText),
              ElementsAre('<', 'x', '>', '<', 'y', '>'));
}

TEST(TokenizerTest, TokensCanBeLookedUpBothWays) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(
      kMerges, {AddedTokenJson(300, "<x>", true), AddedTokenJson(301, "a b", false),
                AddedTokenJson('q', "q", false)}));
  EXPECT_EQ(tokenizer.vocab_size(), 302);
  EXPECT_EQ(tokenizer.TokenBytes(kSpaceThe), " the");
  EXPECT_EQ(tokenizer.TokenBytes(kHalfCharacter), "\xe4\xb8");
  EXPECT_EQ(tokenizer.TokenBytes(0), std::string_view("\0", 1));
  EXPECT_EQ(tokenizer.TokenBytes(300), "<x>");
  for (const int32_t id : {-1, 299, 302, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer.TokenBytes(id), "");
    EXPECT_FALSE(tokenizer.IsAdded(id));
    EXPECT_FALSE(tokenizer.IsSpecial(id));
  }
  EXPECT_EQ(tokenizer.FindToken(" the"), kSpaceThe);
  EXPECT_EQ(tokenizer.FindToken("a b"), 301);
  EXPECT_EQ(tokenizer.FindToken("q"), 'q');
  EXPECT_EQ(tokenizer.FindToken("Ġthe"), std::nullopt);
  EXPECT_EQ(tokenizer.FindToken(""), std::nullopt);
  EXPECT_TRUE(tokenizer.IsAdded(300) && tokenizer.IsSpecial(300));
  EXPECT_TRUE(tokenizer.IsAdded(301) && !tokenizer.IsSpecial(301));
  EXPECT_TRUE(tokenizer.IsAdded('q') && !tokenizer.IsAdded('r'));
}

TEST(TokenizerTest, UnknownIdsDecodeToNothing) {
  const Tokenizer tokenizer =
      LoadTokenizer(TinyTokenizerJson({}, {AddedTokenJson(300, "<x>", true)}));
  const std::vector<int32_t> ids = {'a', -1, 280, 300, 1 << 25, 'b'};
  EXPECT_EQ(tokenizer.Decode(ids), "a<x>b");
  EXPECT_EQ(tokenizer.DecodeBytes(ids), "a<x>b");
}

TEST(TokenizerTest, DecodingRepairsAcrossTokenBorders) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(kMerges));
  const std::vector<int32_t> whole = {kHalfCharacter, 0xad};
  const std::vector<int32_t> broken = {kHalfCharacter, 'x', 0xad, kHalfCharacter};
  EXPECT_EQ(tokenizer.Decode(whole), "中");
  EXPECT_EQ(tokenizer.Decode(broken), "\ufffdx\ufffd\ufffd");
}

TEST(TokenizerTest, EncodeAppends) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson());
  std::vector<int32_t> ids = {5};
  tokenizer.Encode("", SpecialTokens::kParse, ids);
  tokenizer.Encode("ab", SpecialTokens::kParse, ids);
  EXPECT_THAT(ids, ElementsAre(5, 'a', 'b'));
}

TEST(TokenizerTest, CopiesOutliveTheOriginalAndWorkInManyThreads) {
  std::optional<Tokenizer> original = LoadTokenizer(TinyTokenizerJson(kMerges));
  const Tokenizer copy = *original;
  original.reset();
  std::vector<std::vector<int32_t>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] { result = copy.Encode("the the the", SpecialTokens::kParse); });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_THAT(result, ElementsAre(kThe, kSpaceThe, kSpaceThe));
}

TEST(TokenizerTest, AnErrorInAFileNamesTheFile) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("deepinfer-tokenizer-" + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << "[]";
  const auto tokenizer = Tokenizer::FromFile(path);
  std::filesystem::remove(path);
  ASSERT_FALSE(tokenizer);
  EXPECT_THAT(tokenizer.error().message, HasSubstr(path.string()));
  EXPECT_EQ(tokenizer.error().message.find("tokenizer.json: "), std::string::npos);
  const auto missing = Tokenizer::FromFile(path);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(DetokenizerTest, PiecesAreWholeCharactersAndAddUpToDecode) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(kMerges));
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    const auto ids = tokenizer.Encode(RandomBytes(random, 40), SpecialTokens::kParse);
    Detokenizer detokenizer(tokenizer);
    std::string text;
    for (size_t k = 0; k < ids.size(); ++k) {
      const std::string piece = detokenizer.Push(ids[k]);
      ASSERT_EQ(RepairUtf8(piece), piece) << "a piece must be valid UTF-8 by itself";
      text += piece;
    }
    const std::string rest = detokenizer.Finish();
    ASSERT_TRUE(rest.empty() || rest == kReplacementCharacter);
    ASSERT_EQ(text + rest, tokenizer.Decode(ids));
    ASSERT_EQ(detokenizer.Finish(), "") << "Finish must leave nothing behind";
  }
}

TEST(DetokenizerTest, NothingIsHeldBackLongerThanNeeded) {
  Detokenizer detokenizer(LoadTokenizer(TinyTokenizerJson(kMerges)));
  EXPECT_EQ(detokenizer.Push('a'), "a");
  for (const int32_t byte : {0xf0, 0x9f, 0x98}) EXPECT_EQ(detokenizer.Push(byte), "");
  EXPECT_EQ(detokenizer.Push(0x80), "😀");
  EXPECT_EQ(detokenizer.Push(kHalfCharacter), "");
  EXPECT_EQ(detokenizer.Push('x'), "\ufffdx");
  EXPECT_EQ(detokenizer.Push(0xff), "\ufffd");
  EXPECT_EQ(detokenizer.Push(kHalfCharacter), "");
  EXPECT_EQ(detokenizer.Push(-1), "");
  EXPECT_EQ(detokenizer.Finish(), "\ufffd");
  EXPECT_EQ(detokenizer.Push(0xad), "\ufffd") << "Finish must forget what it flushed";
}

}  // namespace
}  // namespace deepinfer
