#include "tokenizer/engram_token_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/tokenizer/tiny_tokenizer.h"

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

// A tokenizer of the 256 bytes (ids 0 to 255) and `texts` from id 256 on; the compressed ids of
// `texts`, named by the smallest id that shares them.
std::vector<int32_t> FirstIdsWithSameKey(const std::vector<std::string>& texts) {
  auto json = TinyTokenizerJson();
  auto& vocab = json["model"]["vocab"];
  for (const auto& text : texts) vocab[SpellingOfBytes(text)] = vocab.size();
  const Tokenizer tokenizer = LoadTokenizer(json);
  const int64_t size = tokenizer.vocab_size();
  for (int64_t count = 1; count <= size; ++count) {
    const auto map = BuildEngramTokenMap(tokenizer, size, count);
    if (!map) continue;
    std::vector<int32_t> first(map->size());
    for (size_t id = 0; id < map->size(); ++id) {
      const auto it = std::find(map->begin(), map->end(), (*map)[id]);
      first[id] = static_cast<int32_t>(it - map->begin());
    }
    return {first.begin() + 256, first.end()};
  }
  ADD_FAILURE() << "no count fits";
  return {};
}

TEST(EngramTokenMapTest, CaseAccentsAndWidthDoNotMatter) {
  EXPECT_EQ(FirstIdsWithSameKey({"Straße", "STRASSE", "STRAßE"}), (std::vector{256, 257, 256}));
  EXPECT_EQ(FirstIdsWithSameKey({"Ａ", "à", "ÀÉ", "ae"}),
            (std::vector<int32_t>{'A', 'A', 258, 258}));
  EXPECT_EQ(FirstIdsWithSameKey({"İ"}), (std::vector<int32_t>{'I'}));
  EXPECT_EQ(FirstIdsWithSameKey({"ﬁ", "FI"}), (std::vector{256, 256}));
}

TEST(EngramTokenMapTest, AllThreeKindsOfMarksAreStripped) {
  // Non-spacing, spacing and enclosing.
  EXPECT_EQ(FirstIdsWithSameKey({"क", "कं", "का", "क\u20dd"}), (std::vector{256, 256, 256, 256}));
}

TEST(EngramTokenMapTest, LowerCaseIsTakenOneCharacterAtATime) {
  // No final sigma: a whole-word rule would give the first another end.
  EXPECT_EQ(FirstIdsWithSameKey({"ΟΔΟΣ", "οδοσ", "οδος"}), (std::vector{256, 256, 258}));
}

TEST(EngramTokenMapTest, BlanksAreStrippedUnlessTheyAreAll) {
  EXPECT_EQ(FirstIdsWithSameKey({" ab", "AB\n", "\u2003ab", "a b", "a \t b"}),
            (std::vector{256, 256, 256, 259, 259}));
  // Tab, LF, CR and blank alone and in runs are one key; VT and FF are stripped, nothing is left,
  // and they stay themselves.
  EXPECT_EQ(FirstIdsWithSameKey({"  ", "\r\n\n", "\v\v", "\f\v"}),
            (std::vector<int32_t>{'\t', '\t', 258, 259}));
  // The release's marker for a single blank: in text it reads as one.
  EXPECT_EQ(FirstIdsWithSameKey({"\ue000"}), (std::vector<int32_t>{'\t'}));
}

TEST(EngramTokenMapTest, TokensThatAreNoTextKeepTheirSpelling) {
  // Byte 0xf8 is spelled "ø", which is also the key of the text "Ø": they share an id, as in the
  // release. Byte 0xc9 is spelled "É"; no text has that key.
  EXPECT_EQ(FirstIdsWithSameKey({"Ø", "É", "\xe4\xb8"}), (std::vector<int32_t>{0xf8, 'E', 258}));
}

TEST(EngramTokenMapTest, IdsWithoutATokenShareOneKey) {
  const Tokenizer tokenizer =
      LoadTokenizer(TinyTokenizerJson({}, {AddedTokenJson(260, "<x>", true)}));
  const int64_t distinct_bytes = 256 - 26 - 3;
  const auto map = BuildEngramTokenMap(tokenizer, 264, distinct_bytes + 1 + 1);
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->size(), 264u);
  for (const size_t id : {256, 259, 261, 263}) EXPECT_EQ((*map)[id], distinct_bytes);
  EXPECT_EQ((*map)[260], distinct_bytes + 1);
}

TEST(EngramTokenMapTest, AForeignTokenizerIsRefused) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson());
  const auto wrong_count = BuildEngramTokenMap(tokenizer, 256, 99092);
  ASSERT_FALSE(wrong_count);
  EXPECT_THAT(wrong_count.error().message, HasSubstr("227"));
  EXPECT_THAT(wrong_count.error().message, HasSubstr("99092"));
  const auto small_model = BuildEngramTokenMap(tokenizer, 255, 227);
  ASSERT_FALSE(small_model);
  EXPECT_THAT(small_model.error().message, HasSubstr("255"));
}

}  // namespace
}  // namespace deepinfer
