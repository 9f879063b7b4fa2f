#include "grammar/matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <thread>

#include "grammar/grammar_cache.h"
#include "tests/unit/grammar/grammar_test_util.h"

namespace deepinfer::grammar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int32_t kFirstWord = 257;

TEST(Matcher, TokensThatHoldHalfACharacterMustBeCompleted) {
  // U+20AC is e2 82 ac.
  const auto vocabulary = ByteVocabulary({"a\xe2", "\x82\xac", "\xac"});
  const auto grammar = Compile(PlainRegexToIr, "a€", vocabulary);
  ASSERT_TRUE(grammar.has_value());
  Matcher matcher(*grammar);
  EXPECT_THAT(Allowed(matcher), ElementsAre(1 + 'a', kFirstWord));
  ASSERT_TRUE(matcher.Advance(kFirstWord).has_value());
  EXPECT_FALSE(matcher.CanEnd());
  EXPECT_THAT(Allowed(matcher), ElementsAre(1 + 0x82, kFirstWord + 1));
  ASSERT_TRUE(matcher.Advance(kFirstWord + 1).has_value());
  EXPECT_TRUE(matcher.MustEnd());
  EXPECT_THAT(Allowed(matcher), ElementsAre(0));
}

TEST(Matcher, EndTokensOnlyWhereTheTextIsComplete) {
  const auto grammar = Compile(PlainRegexToIr, "a+");
  Matcher matcher(*grammar);
  EXPECT_FALSE(*matcher.Allows(0));
  EXPECT_THAT(matcher.Advance(0).error().message, HasSubstr("token 0 is not allowed"));
  EXPECT_THAT(matcher.Advance(-1).error().message, HasSubstr("token -1 is not in [0, 257)"));
  ASSERT_TRUE(matcher.Advance(1 + 'a').has_value());
  ASSERT_TRUE(matcher.Advance(0).has_value());
  EXPECT_TRUE(matcher.has_ended());
  EXPECT_THAT(Allowed(matcher), IsEmpty());
  EXPECT_FALSE(matcher.Advance(1 + 'a').has_value());
  ASSERT_TRUE(matcher.Rollback(1).has_value());
  EXPECT_THAT(Allowed(matcher), ElementsAre(0, 1 + 'a'));
  EXPECT_THAT(matcher.Rollback(2).error().message, HasSubstr("cannot undo 2 tokens of 1"));
}

TEST(Matcher, WhatACountForbidsIsNoChoice) {
  const auto grammar = Compile(PlainRegexToIr, "a{300}b{0,400}");
  Matcher matcher(*grammar);
  EXPECT_EQ(matcher.ForcedBytes(1000), std::string(300, 'a'));
  ASSERT_TRUE(matcher.AdvanceBytes(std::string(300, 'a') + std::string(399, 'b')).has_value());
  EXPECT_FALSE(matcher.MustEnd());
  ASSERT_TRUE(matcher.Advance(1 + 'b').has_value());
  EXPECT_TRUE(matcher.MustEnd());
}

TEST(Matcher, VocabularyWithoutANeededByteIsRefused) {
  const auto vocabulary = *Vocabulary::Create({"", "a", "bc"}, {0});
  EXPECT_THAT(Compile(PlainRegexToIr, "ab", vocabulary).error().message, HasSubstr("byte 0x62"));
  EXPECT_TRUE(Compile(PlainRegexToIr, "a*", vocabulary).has_value());
  EXPECT_THAT(Vocabulary::Create({"a"}, {1}).error().message, HasSubstr("end token 1"));
}

TEST(Matcher, AcceptSeveralStopsAtTheFirstRefusal) {
  const auto grammar = Compile(PlainRegexToIr, "ab?c");
  Matcher matcher(*grammar);
  const int32_t tokens[] = {1 + 'a', 1 + 'c', 1 + 'c', 0};
  EXPECT_EQ(*matcher.AcceptSeveral(tokens), 2u);
  EXPECT_TRUE(matcher.CanEnd());
}

TEST(Matcher, UnorderedMembersComeOnceInAnyOrder) {
  GrammarIr ir;
  Unordered members;
  for (int i = 0; i < 60; ++i) {
    members.members.push_back(
        {ir.Literal(std::string(1, static_cast<char>('A' + i))), i < 2, i == 59});
  }
  members.separator = ir.Literal(",");
  members.max = 5;
  ir.SetRoot(ir.AddRule("root", ir.Any(members)));
  const auto grammar = CompiledGrammar::Create(ir, ByteVocabulary());
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  // Members are A to | (59 letters on); | may be repeated, A and B must come.
  EXPECT_TRUE(Accepts(*grammar, "B,A"));
  EXPECT_TRUE(Accepts(*grammar, "C,A,D,B,E"));
  EXPECT_FALSE(Accepts(*grammar, "A,C"));
  EXPECT_FALSE(Accepts(*grammar, "A,B,A"));
  EXPECT_FALSE(Accepts(*grammar, "C,D,E,F"));  // no room would be left for A and B
  EXPECT_TRUE(Accepts(*grammar, "|,|,A,B,|"));
  EXPECT_FALSE(Accepts(*grammar, "A,C,C,B"));
}

TEST(Matcher, ForcedTokensLeaveOpenWhatALongerTokenCouldTake) {
  const auto vocabulary = ByteVocabulary({"{\"", "name", "\":", "\": \"", "{\"name"});
  const auto tokenize = [&](std::string_view text) {
    std::vector<int32_t> tokens;
    while (!text.empty()) {
      int32_t best = 1 + static_cast<uint8_t>(text[0]);
      for (int32_t token = kFirstWord; token < vocabulary->size(); ++token) {
        const std::string_view bytes = vocabulary->token_bytes(token);
        if (text.starts_with(bytes) && bytes.size() > vocabulary->token_bytes(best).size())
          best = token;
      }
      tokens.push_back(best);
      text.remove_prefix(vocabulary->token_bytes(best).size());
    }
    return tokens;
  };
  const auto open = Compile(PlainRegexToIr, "\\{\"name\":( \"x\"|1)", vocabulary);
  Matcher matcher(*open);
  EXPECT_EQ(matcher.ForcedBytes(), "{\"name\":");
  EXPECT_THAT(matcher.ForcedTokens(tokenize), ElementsAre(kFirstWord + 4));
  const auto closed = Compile(PlainRegexToIr, "\\{\"name\":[01]", vocabulary);
  Matcher strict(*closed);
  EXPECT_THAT(strict.ForcedTokens(tokenize), ElementsAre(kFirstWord + 4, kFirstWord + 2));
}

TEST(Matcher, MasksAreTheSameFromManyThreads) {
  const auto grammar = Compile(GbnfToIr,
                               "root ::= \"[\" (item (\",\" item)*)? \"]\"\nitem ::= root | "
                               "\"\\\"\" [^\"\\\\]{0,300} \"\\\"\"",
                               ByteVocabulary({"[\"", "abc", "abc\",", "\",\"", "\"]", "]]"}));
  ASSERT_TRUE(grammar.has_value());
  const std::string text = "[[\"abcabc\",[\"\"]],\"x\"]";
  std::vector<std::vector<std::vector<int32_t>>> masks(4);
  std::vector<std::thread> threads;
  for (auto& mine : masks) {
    threads.emplace_back([&] {
      Matcher matcher(*grammar);
      for (const char c : text) {
        mine.push_back(Allowed(matcher));
        ASSERT_TRUE(matcher.Advance(1 + static_cast<uint8_t>(c)).has_value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& other : masks) EXPECT_EQ(other, masks[0]);
}

// Words of the characters that masks treat in bulk and of those that they do not.
std::vector<std::string> RandomWords() {
  const std::string_view chars[] = {"a",  "b",      "z",  "A",    "Z", "0",  "9",
                                    "_",  " ",      "\"", "\\",   "n", "\n", "é",
                                    "日", "\u2028", "😀", "\x7f", "-", ",",  "\xe2"};
  std::mt19937 random(7);
  std::vector<std::string> words;
  for (int i = 0; i < 700; ++i) {
    const size_t kinds = i % 3 == 0 ? 3 : i % 3 == 1 ? 8 : std::size(chars);
    const size_t length = i % 50 == 0 ? 30 + random() % 20 : 2 + random() % 9;
    std::string word;
    for (size_t n = 0; n < length; ++n) word += chars[random() % kinds];
    words.push_back(word);
  }
  return words;
}

TEST(Matcher, MasksInBulkEqualMasksTokenByToken) {
  const auto vocabulary = ByteVocabulary(RandomWords());
  const char* const patterns[] = {"[^]*",
                                  "\"([^\"\\\\\\x00-\\x1f]|\\\\[\"\\\\n])*\"",
                                  "\"[^\"\\\\]{0,4}\",\"[^\"\\\\]{3,2000}\"",
                                  ".{2,7}z?",
                                  "(.{0,400}\\n)*",
                                  "[a-z]{1,9}-?[a-z]*",
                                  "[a-zA-Z0-9_]{3,40}(,[a-z]{2,300}){0,3}",
                                  "([ab]{0,5}z)*[a-z]{0,6}_",
                                  "(a|[a-z]{3})*[^a]{1,5}",
                                  "[a-y]*z[a-z]{0,35}"};
  for (const char* pattern : patterns) {
    SCOPED_TRACE(pattern);
    const auto grammar = Compile(PlainRegexToIr, pattern, vocabulary);
    ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
    std::mt19937 random(3);
    for (int walk = 0; walk < 3; ++walk) {
      Matcher matcher(*grammar);
      for (int step = 0; step < 12 && !matcher.has_ended(); ++step) {
        const std::vector<int32_t> allowed = Allowed(matcher);
        std::vector<int32_t> stepped;
        for (int32_t token = 0; token < vocabulary->size(); ++token) {
          if (*matcher.Allows(token)) stepped.push_back(token);
        }
        ASSERT_EQ(allowed, stepped);
        ASSERT_FALSE(allowed.empty());
        ASSERT_TRUE(matcher.Advance(allowed[random() % allowed.size()]).has_value());
      }
    }
  }
}

// A rule that ends where its callers take the same text, so that tokens may go beyond it anywhere.
TEST(Matcher, MasksInBulkLookBeyondTheRule) {
  const auto vocabulary = ByteVocabulary(RandomWords());
  const auto grammar = Compile(GbnfToIr,
                               "root ::= [ab]{0,3} word [a-z]{0,40} \".\" word? root?\n"
                               "word ::= [a-z]{2,12} (\"_\" [a-z]{1,5} | \"-\" root)?",
                               vocabulary);
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  std::mt19937 random(5);
  for (int walk = 0; walk < 6; ++walk) {
    Matcher matcher(*grammar);
    for (int step = 0; step < 12 && !matcher.has_ended(); ++step) {
      const std::vector<int32_t> allowed = Allowed(matcher);
      std::vector<int32_t> stepped;
      for (int32_t token = 0; token < vocabulary->size(); ++token) {
        if (*matcher.Allows(token)) stepped.push_back(token);
      }
      ASSERT_EQ(allowed, stepped);
      ASSERT_EQ(allowed, Allowed(matcher));  // now from what was kept
      ASSERT_TRUE(matcher.Advance(allowed[random() % allowed.size()]).has_value());
    }
  }
}

TEST(GrammarCache, KeepsWhatWasUsedLastWithinItsBytes) {
  GrammarCache cache(ByteVocabulary(), {}, 20'000);
  const auto get = [&](const std::string& pattern) {
    return cache.Get({"regex", "", pattern},
                     [&](Budget& budget) { return RegexToIr(pattern, {}, budget); });
  };
  const auto first = get("a");
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(*get("a"), *first);
  EXPECT_EQ(cache.stats().hits, 1u);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(get("b{" + std::to_string(i) + "}").has_value());
    ASSERT_TRUE(get("a").has_value());
  }
  EXPECT_EQ(*get("a"), *first);
  EXPECT_LT(cache.stats().grammars, 20u);
  EXPECT_LE(cache.stats().bytes, 20'000u);
  EXPECT_FALSE(get("(").has_value());
}

}  // namespace
}  // namespace deepinfer::grammar
