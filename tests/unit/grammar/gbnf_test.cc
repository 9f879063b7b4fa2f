#include "grammar/gbnf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/grammar/grammar_test_util.h"

namespace deepinfer::grammar {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kJson = R"gbnf(
# JSON with free white space
root   ::= ws value
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
    string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf";

std::string ErrorOf(std::string_view text) {
  const auto grammar = Compile(GbnfToIr, text);
  return grammar ? "no error" : grammar.error().message;
}

TEST(Gbnf, JsonGrammarTakesJsonAndNothingElse) {
  const auto grammar = Compile(GbnfToIr, kJson);
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  for (const char* text :
       {"{}", "[]", "[1,-2.5e3,\"\"]", "{\"a\":{\"b\":[null,true]},\"é\":\"\\u00e9\\n\"}",
        "\"日本\"", "[[[[[[[[]]]]]]]]"}) {
    EXPECT_TRUE(Accepts(*grammar, text)) << text;
  }
  for (const char* text :
       {"", "{", "{\"a\"}", "[1,]", "01", "\"\x01\"", "\"\xff\"", "[]]", "tru"}) {
    EXPECT_FALSE(Accepts(*grammar, text)) << text;
  }
}

TEST(Gbnf, LeftAndRightRecursionEndsInDeepInput) {
  const auto left =
      Compile(GbnfToIr, "root ::= root \"+\" term | term\nterm ::= [0-9] | \"(\" root \")\"");
  const auto right =
      Compile(GbnfToIr, "root ::= term \"+\" root | term\nterm ::= [0-9] | \"(\" root \")\"");
  const auto hidden = Compile(GbnfToIr, "root ::= a\na ::= b \"x\" | \"y\"\nb ::= a | \"z\"");
  ASSERT_TRUE(left && right && hidden);
  std::string sum = "1";
  for (int i = 0; i < 3000; ++i) sum += i % 100 == 99 ? "+(1+2)" : "+1";
  EXPECT_TRUE(Accepts(*left, sum));
  EXPECT_TRUE(Accepts(*right, sum));
  EXPECT_FALSE(Accepts(*left, sum + "+"));
  EXPECT_TRUE(Accepts(*hidden, "zxxxx"));
  EXPECT_TRUE(Accepts(*hidden, "yxx"));
  EXPECT_FALSE(Accepts(*hidden, "z"));
}

TEST(Gbnf, AmbiguousAndNullableRecursionIsExact) {
  const auto grammar = Compile(GbnfToIr, "root ::= root root | \"a\" | ");
  ASSERT_TRUE(grammar.has_value());
  EXPECT_TRUE(Accepts(*grammar, std::string(60, 'a')));
  EXPECT_FALSE(Accepts(*grammar, "aab"));
  const auto twins = Compile(GbnfToIr, "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"x\"");
  EXPECT_TRUE(
      Accepts(*twins, std::string(50, 'a') + "x" + std::string(25, 'b') + std::string(25, 'c')));
}

TEST(Gbnf, RepetitionsCountExactly) {
  const auto grammar =
      Compile(GbnfToIr, "root ::= (\"ab\" | \"c\"){2,500} [0-9]{,3} x{1,}\nx ::= \"<\" x? \">\"");
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  EXPECT_TRUE(Accepts(*grammar, "abc12<<>>"));
  EXPECT_FALSE(Accepts(*grammar, "c12<>"));
  EXPECT_TRUE(Accepts(*grammar, std::string(500, 'c') + "<><>"));
  EXPECT_FALSE(Accepts(*grammar, std::string(501, 'c') + "<>"));
  EXPECT_FALSE(Accepts(*grammar, "cc1234<>"));
}

TEST(Gbnf, ErrorsNameLineAndColumn) {
  EXPECT_THAT(ErrorOf("root ::= \"a\"\n  | other\n"),
              HasSubstr("line 2, column 5: rule other is not defined"));
  EXPECT_THAT(ErrorOf("root ::= (\"a\""), HasSubstr("line 1, column 10: this ( has no )"));
  EXPECT_THAT(ErrorOf("root ::= [b-a]"), HasSubstr("line 1, column 11"));
  EXPECT_THAT(ErrorOf("root ::= \"\\q\""), HasSubstr("unknown escape '\\q'"));
  EXPECT_THAT(ErrorOf("root ::= <think>"), HasSubstr("token references"));
  EXPECT_THAT(ErrorOf("root ::= \"a\"{3,2}"), HasSubstr("3 is more than 2"));
  EXPECT_THAT(ErrorOf("a ::= \"a\"\na ::= \"b\""),
              HasSubstr("line 2, column 1: rule a is defined twice"));
  EXPECT_THAT(ErrorOf("a ::= \"a\""), HasSubstr("no rule named root"));
  EXPECT_THAT(ErrorOf("root ::= root \"a\""), HasSubstr("matches no text at all"));
  EXPECT_THAT(ErrorOf("root ::= \"\xff\""), HasSubstr("not valid UTF-8"));
}

}  // namespace
}  // namespace deepinfer::grammar
