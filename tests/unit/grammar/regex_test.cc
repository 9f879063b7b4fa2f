#include "grammar/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/grammar/grammar_test_util.h"

namespace deepinfer::grammar {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto grammar = Compile(PlainRegexToIr, text);
  return grammar ? "no error" : grammar.error().message;
}

TEST(Regex, WhatIsNotRegularIsRefusedByName) {
  EXPECT_THAT(ErrorOf("a(?=b)"), HasSubstr("line 1, column 2: look-ahead (?=...)"));
  EXPECT_THAT(ErrorOf("(?!b)"), HasSubstr("negative look-ahead"));
  EXPECT_THAT(ErrorOf("(?<=b)a"), HasSubstr("look-behind (?<=...)"));
  EXPECT_THAT(ErrorOf("(?<!b)a"), HasSubstr("negative look-behind"));
  EXPECT_THAT(ErrorOf("(a)\\1"), HasSubstr("line 1, column 4: back-reference \\1"));
  EXPECT_THAT(ErrorOf("\\k<n>"), HasSubstr("back-reference"));
  EXPECT_THAT(ErrorOf("(?>a)"), HasSubstr("atomic group"));
  EXPECT_THAT(ErrorOf("a++"), HasSubstr("possessive"));
  EXPECT_THAT(ErrorOf("(?i)a"), HasSubstr("inline flags"));
  EXPECT_THAT(ErrorOf("\\p{Greek}"), HasSubstr("Unicode property 'Greek'"));
  EXPECT_THAT(ErrorOf("[[:alpha:]]"), HasSubstr("POSIX class [:alpha:]"));
  EXPECT_THAT(ErrorOf("\\y"), HasSubstr("escape \\y"));
}

TEST(Regex, MalformedExpressionsHavePositions) {
  EXPECT_THAT(ErrorOf("(a"), HasSubstr("column 1: this ( has no )"));
  EXPECT_THAT(ErrorOf("ab)"), HasSubstr("column 3: unmatched )"));
  EXPECT_THAT(ErrorOf("a\n[b"), HasSubstr("line 2, column 1: this [ has no ]"));
  EXPECT_THAT(ErrorOf("*a"), HasSubstr("nothing to repeat"));
  EXPECT_THAT(ErrorOf("a**"), HasSubstr("nothing to repeat"));
  EXPECT_THAT(ErrorOf("a{3,2}"), HasSubstr("min <= max"));
  EXPECT_THAT(ErrorOf("[b-a]"), HasSubstr("out of order"));
  EXPECT_THAT(ErrorOf("\\ud800"), HasSubstr("no Unicode character"));
  EXPECT_THAT(ErrorOf("a\\"), HasSubstr("\\ at the end"));
  EXPECT_THAT(ErrorOf("^*"), HasSubstr("assertion cannot be repeated"));
}

TEST(Regex, EscapesOfBothDialects) {
  struct Case {
    const char* pattern;
    const char* text;
  };
  for (const Case& c : {Case{"\\u00e9\\x41\\u{1F600}\\uD83D\\uDE00", "éA😀😀"},
                        Case{"\\cJ\\t", "\n\t"}, Case{"(?<year>\\d{4})-(?P<m>\\d\\d)", "2024-05"},
                        Case{"[^]", "\n"}, Case{"a{,2}{", "a{,2}{"}, Case{"[\\b\\]\\-a]+", "\b]-a"},
                        Case{"\\0", ""}, Case{"^(?:ab|^c)$", "c"}, Case{"x\\bY?\\B|x\\Bz", "xz"}}) {
    const auto grammar = Compile(PlainRegexToIr, c.pattern);
    ASSERT_TRUE(grammar.has_value()) << c.pattern << ": " << grammar.error().message;
    const std::string_view text = c.text[0] == '\0' ? std::string_view("\0", 1) : c.text;
    EXPECT_TRUE(Accepts(*grammar, text)) << c.pattern;
  }
}

TEST(Regex, IgnoreCaseHoldsInNegatedClasses) {
  Budget budget{Limits()};
  const auto dfa = RegexToDfa("[^a]\\w?É", RegexMatch::kWhole, {.ignore_case = true}, budget);
  ASSERT_TRUE(dfa.has_value());
  EXPECT_TRUE(dfa->Accepts(std::vector<uint32_t>{'b', 0xe9}));
  EXPECT_FALSE(dfa->Accepts(std::vector<uint32_t>{'A', 0xe9}));
}

TEST(Regex, LongCountsStaySmall) {
  const auto grammar = Compile(PlainRegexToIr, "(?:[a-z]{3,1000000},){0,100000}!");
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  EXPECT_LT((*grammar)->stats().states, 100u);
  EXPECT_TRUE(Accepts(*grammar, "abc,defgh,!"));
  EXPECT_FALSE(Accepts(*grammar, "abc,de,!"));
}

}  // namespace
}  // namespace deepinfer::grammar
