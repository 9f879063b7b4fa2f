#include "tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <random>
#include <string>
#include <vector>

#include "tests/unit/tokenizer/tiny_tokenizer.h"
#include "tokenizer/char_class.h"
#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

using ::testing::ElementsAre;

// A regular expression run by PCRE2, whose Unicode is 14.0 in Debian 12.
class Regex {
 public:
  explicit Regex(const std::string& pattern) {
    int error = 0;
    size_t offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                          PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    if (code_ == nullptr) std::abort();
    pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
    match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
  }
  ~Regex() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // The number of the group that matched, 0 for no match.
  int MatchingGroup(const std::string& text) const {
    const int count = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                                  0, match_, nullptr);
    return count <= 0 ? 0 : count - 1;
  }

  // Ends of the pieces of Split with behaviour Isolated.
  std::vector<size_t> PieceEnds(const std::string& text) const {
    std::vector<size_t> ends;
    size_t pos = 0;
    while (pos < text.size()) {
      const int count = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                    pos, 0, match_, nullptr);
      if (count <= 0) break;
      const size_t* range = pcre2_get_ovector_pointer(match_);
      if (range[0] > pos) ends.push_back(range[0]);
      ends.push_back(range[1]);
      pos = range[1];
    }
    if (pos < text.size()) ends.push_back(text.size());
    return ends;
  }

 private:
  pcre2_code* code_ = nullptr;
  pcre2_match_data* match_ = nullptr;
};

std::vector<size_t> ScannedEnds(SplitRule rule, std::string_view text) {
  std::vector<size_t> ends;
  for (size_t begin = 0; begin < text.size();) {
    begin = PieceEnd(rule, text, begin);
    ends.push_back(begin);
  }
  return ends;
}

// Order of the enumerators of CharClass from kLetter on.
constexpr const char* kClassRegex =
    R"(^(?:(\p{L})|(\p{M})|(\p{N})|(\p{P})|(\p{S})|([^\S\r\n])|([\r\n]))$)";

// PCRE2 still counts U+180E as white space; Unicode ended that in 6.3 and Oniguruma follows.
constexpr uint32_t kMongolianVowelSeparator = 0x180e;

std::vector<uint32_t> CodePointsKnownToPcre2() {
  const Regex assigned(R"(([^\p{Cn}\p{Cs}]))");
  std::vector<uint32_t> known;
  for (uint32_t c = 0; c <= 0x10ffff; ++c) {
    if (c == kMongolianVowelSeparator || (c >= 0xd800 && c <= 0xdfff)) continue;
    std::string text;
    AppendUtf8(c, text);
    if (assigned.MatchingGroup(text) != 0) known.push_back(c);
  }
  return known;
}

TEST(CharClassTest, EveryAssignedCodePointHasTheClassThatTheRegexEngineGivesIt) {
  const Regex classes(kClassRegex);
  const std::vector<uint32_t> known = CodePointsKnownToPcre2();
  EXPECT_GT(known.size(), 140000u);
  for (const uint32_t c : known) {
    std::string text;
    AppendUtf8(c, text);
    ASSERT_EQ(static_cast<int>(ClassOf(c)), classes.MatchingGroup(text)) << std::hex << c;
  }
}

TEST(CharClassTest, CharactersOfUnicode16AreKnown) {
  EXPECT_EQ(ClassOf(0x2ebf0), CharClass::kLetter);  // 15.1
  EXPECT_EQ(ClassOf(0x13460), CharClass::kLetter);
  EXPECT_EQ(ClassOf(0x143fa), CharClass::kLetter);
  EXPECT_EQ(ClassOf(0x143fb), CharClass::kOther);
  EXPECT_EQ(ClassOf(0x0897), CharClass::kMark);
  EXPECT_EQ(ClassOf(0x1ccf0), CharClass::kNumber);
  EXPECT_EQ(ClassOf(0x1b7f), CharClass::kPunctuation);
  EXPECT_EQ(ClassOf(0x1fae9), CharClass::kSymbol);
  EXPECT_EQ(ClassOf(0x2fffe), CharClass::kOther);
  EXPECT_EQ(ClassOf(0x110000), CharClass::kOther);
  EXPECT_EQ(ClassOf(kMongolianVowelSeparator), CharClass::kOther);
}

// Random text with many of the characters that the expressions care about.
class RandomText {
 public:
  RandomText() : known_(CodePointsKnownToPcre2()) {}

  // `plain` receives the text with every invalid byte replaced by U+E000, which is outside every
  // class, and `plain_ends` the byte of `plain` after each character, `ends` that of `text`.
  struct Text {
    std::string bytes;
    std::string plain;
    std::vector<size_t> ends;
    std::vector<size_t> plain_ends;
  };
  Text Next(bool with_invalid) {
    static constexpr char32_t kFrequent[] =
        U"  \n\r\t\v\f\u0085\u00a0\u3000abZ09.,!'<$+\u0301\u0e33é中龥一ぁゟ゠ヿ٣½Ⅷ\u200d\u0000";
    constexpr size_t kFrequentCount = sizeof(kFrequent) / sizeof(kFrequent[0]) - 1;
    Text text;
    const size_t length = random_() % 24;
    while (text.ends.size() < length) {
      if (with_invalid && random_() % 6 == 0) {
        text.bytes += static_cast<char>(0xf8 + random_() % 8);
        text.plain += "\ue000";
      } else {
        const uint32_t c = random_() % 4 == 0 ? known_[random_() % known_.size()]
                                              : kFrequent[random_() % kFrequentCount];
        AppendUtf8(c, text.bytes);
        AppendUtf8(c, text.plain);
      }
      text.ends.push_back(text.bytes.size());
      text.plain_ends.push_back(text.plain.size());
    }
    return text;
  }

 private:
  std::vector<uint32_t> known_;
  std::mt19937 random_{20240601};
};

TEST(PreTokenizerPropertyTest, ScannersCutLikeTheRegularExpressions) {
  const Regex regexes[] = {Regex(kNumbersRegex), Regex(kCjkRegex), Regex(kWordsRegex)};
  RandomText random;
  for (int i = 0; i < 60000; ++i) {
    const std::string text = random.Next(false).bytes;
    for (const SplitRule rule : {SplitRule::kNumbers, SplitRule::kCjk, SplitRule::kWords}) {
      ASSERT_EQ(ScannedEnds(rule, text), regexes[static_cast<int>(rule)].PieceEnds(text))
          << "rule " << static_cast<int>(rule) << " on " << nlohmann::json(text);
    }
  }
}

TEST(PreTokenizerPropertyTest, AnInvalidByteCountsAsACharacterOutsideEveryClass) {
  const Regex regexes[] = {Regex(kNumbersRegex), Regex(kCjkRegex), Regex(kWordsRegex)};
  RandomText random;
  for (int i = 0; i < 20000; ++i) {
    const auto text = random.Next(true);
    for (const SplitRule rule : {SplitRule::kNumbers, SplitRule::kCjk, SplitRule::kWords}) {
      std::vector<size_t> expected;
      for (const size_t end : regexes[static_cast<int>(rule)].PieceEnds(text.plain)) {
        const auto it = std::find(text.plain_ends.begin(), text.plain_ends.end(), end);
        expected.push_back(text.ends[static_cast<size_t>(it - text.plain_ends.begin())]);
      }
      ASSERT_EQ(ScannedEnds(rule, text.bytes), expected)
          << "rule " << static_cast<int>(rule) << " on " << nlohmann::json(text.plain);
    }
  }
}

std::vector<std::string> Pieces(const std::vector<SplitRule>& stages, std::string_view text) {
  std::vector<std::string> pieces;
  ForEachPiece(stages, text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

const std::vector<SplitRule> kDeepSeekStages = {SplitRule::kNumbers, SplitRule::kCjk,
                                                SplitRule::kWords};

TEST(PreTokenizerTest, LaterStagesSeeNoFurtherThanTheirPiece) {
  // The spaces before the digit are at their piece's end: no blank is left over for a word.
  EXPECT_THAT(Pieces(kDeepSeekStages, "a  1234 b"), ElementsAre("a", "  ", "123", "4", " b"));
  EXPECT_THAT(Pieces(kDeepSeekStages, "x 中文y"), ElementsAre("x", " ", "中文", "y"));
  EXPECT_THAT(Pieces(kDeepSeekStages, "it's <b>no</b>\n\n  end"),
              ElementsAre("it", "'s", " <", "b", ">no", "</", "b", ">\n\n", " ", " end"));
  EXPECT_THAT(Pieces(kDeepSeekStages, ""), ElementsAre());
  EXPECT_THAT(Pieces({}, "whole text"), ElementsAre("whole text"));
}

TEST(PreTokenizerTest, CutLetterSequencesAndBrokenBytesAreKept) {
  EXPECT_THAT(Pieces(kDeepSeekStages, "\xe4\xb8"), ElementsAre("\xe4\xb8"));
  EXPECT_THAT(Pieces(kDeepSeekStages, "a\xe4\xb8z"), ElementsAre("a", "\xe4", "\xb8z"));
}

TEST(RecogniseSplitRegexTest, KnowsBothSpellingsOfLineEndsAndNothingElse) {
  std::string words = kWordsRegex;
  EXPECT_EQ(RecogniseSplitRegex(words), SplitRule::kWords);
  for (size_t at; (at = words.find("\\r\\n")) != std::string::npos;) words.replace(at, 4, "\r\n");
  EXPECT_EQ(RecogniseSplitRegex(words), SplitRule::kWords);
  EXPECT_EQ(RecogniseSplitRegex(kNumbersRegex), SplitRule::kNumbers);
  EXPECT_EQ(RecogniseSplitRegex(kCjkRegex), SplitRule::kCjk);
  EXPECT_EQ(RecogniseSplitRegex(R"(\p{N}{1,2})"), std::nullopt);
  EXPECT_EQ(RecogniseSplitRegex(words + "|x"), std::nullopt);
  EXPECT_EQ(RecogniseSplitRegex(""), std::nullopt);
}

}  // namespace
}  // namespace deepinfer
