#include "grammar/lark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/grammar/grammar_test_util.h"

namespace deepinfer::grammar {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto grammar = Compile(LarkToIr, text);
  return grammar ? "no error" : grammar.error().message;
}

constexpr std::string_view kCalculator = R"lark(
// a calculator
?start: sum
?sum: product
    | sum "+" product   -> add
    | sum "-" product   -> sub
?product: atom | product "*" atom
?atom: NUMBER | "-" atom | NAME | "(" sum ")"
NAME.2: /[a-z_]\w*/i
%import common.NUMBER
%import common (WS, INT)
%ignore WS
)lark";

TEST(Lark, CalculatorWithIgnoredSpace) {
  const auto grammar = Compile(LarkToIr, kCalculator);
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  EXPECT_TRUE(Accepts(*grammar, "1+2*3"));
  EXPECT_TRUE(Accepts(*grammar, "  -1.5e3 * ( Foo_1 -\n2 )  "));
  EXPECT_FALSE(Accepts(*grammar, "1+"));
  EXPECT_FALSE(Accepts(*grammar, "(1"));
}

TEST(Lark, OperatorsRangesAndFlags) {
  const auto grammar = Compile(LarkToIr, R"(start: "a".."c"~2..3 ["x"] ("Yes"i | /n.o/s) _tail?
_tail: "!"+)");
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  EXPECT_TRUE(Accepts(*grammar, "abYES"));
  EXPECT_TRUE(Accepts(*grammar, "abcxn\no!!"));
  EXPECT_FALSE(Accepts(*grammar, "ayes"));
  EXPECT_FALSE(Accepts(*grammar, "abdyes"));
}

TEST(Lark, CommonTerminalsCompile) {
  for (const char* name : {"DIGIT",
                           "HEXDIGIT",
                           "INT",
                           "SIGNED_INT",
                           "DECIMAL",
                           "FLOAT",
                           "SIGNED_FLOAT",
                           "NUMBER",
                           "SIGNED_NUMBER",
                           "ESCAPED_STRING",
                           "LCASE_LETTER",
                           "UCASE_LETTER",
                           "LETTER",
                           "WORD",
                           "CNAME",
                           "WS_INLINE",
                           "WS",
                           "CR",
                           "LF",
                           "NEWLINE",
                           "SH_COMMENT",
                           "CPP_COMMENT",
                           "C_COMMENT",
                           "SQL_COMMENT"}) {
    const auto grammar =
        Compile(LarkToIr, "start: X\n%import common." + std::string(name) + " -> X\n");
    EXPECT_TRUE(grammar.has_value()) << name << ": " << grammar.error().message;
  }
  const auto comment = Compile(LarkToIr, "start: C_COMMENT\n%import common.C_COMMENT");
  EXPECT_TRUE(Accepts(*comment, "/* a ** b */"));
  EXPECT_FALSE(Accepts(*comment, "/* a */ b */"));
}

TEST(Lark, RefusesByNameWithPosition) {
  EXPECT_THAT(ErrorOf("start: a{b}\n"), HasSubstr("line 1, column 8: templates"));
  EXPECT_THAT(ErrorOf("%declare X\nstart: X"), HasSubstr("directive %declare is not supported"));
  EXPECT_THAT(ErrorOf("start: <think>"), HasSubstr("special tokens"));
  EXPECT_THAT(ErrorOf("start: /a(?=b)/"), HasSubstr("look-ahead"));
  EXPECT_THAT(ErrorOf("start: /a/x"), HasSubstr("flag x"));
  EXPECT_THAT(ErrorOf("start: other"), HasSubstr("rule other is not defined"));
  EXPECT_THAT(ErrorOf("a: \"b\""), HasSubstr("no rule named start"));
  EXPECT_THAT(ErrorOf("start: (\"a\""), HasSubstr("this ( is not closed"));
  EXPECT_THAT(ErrorOf("%import common.NOPE\nstart: NOPE"), HasSubstr("common.NOPE is not known"));
}

}  // namespace
}  // namespace deepinfer::grammar
