// Inputs made to exhaust a compiler: each is answered or refused within the limits, which are
// counted, not timed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/grammar/grammar_test_util.h"

namespace deepinfer::grammar {
namespace {

std::string Repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// Compiles, and takes a few tokens of what is allowed; a refusal must be one of a limit.
void Survive(FrontEnd front_end, const std::string& text) {
  const auto grammar = Compile(front_end, text, ByteVocabulary({"ab", "aaaa", "((", "\",\""}));
  if (!grammar) {
    EXPECT_EQ(grammar.error().code, ErrorCode::kResourceExhausted) << grammar.error().message;
    return;
  }
  Matcher matcher(*grammar);
  for (int i = 0; i < 40; ++i) {
    std::vector<uint32_t> mask((*grammar)->vocabulary().mask_words());
    const Status filled = matcher.FillMask(mask);
    if (!filled) {
      EXPECT_EQ(filled.error().code, ErrorCode::kResourceExhausted);
      return;
    }
    int32_t last = -1;
    for (int32_t token = 0; token < (*grammar)->vocabulary().size(); ++token) {
      if ((mask[static_cast<size_t>(token) / 32] >> (token % 32)) & 1) last = token;
    }
    ASSERT_GE(last, 0);
    if (!matcher.Advance(last) || matcher.has_ended()) return;
  }
}

TEST(HostileGrammar, CatastrophicRegexes) {
  for (const char* pattern :
       {"(a*)*b", "(a|aa)+$", "(a|a?)+", "([a-zA-Z]+)*", "(.*a){30}", "(a|b)*a(a|b){30}",
        "(((a?){50}){50}){50}", "a{0,1000000}", "(a|aa){0,1000000}", "(a{0,1000}){0,1000}",
        "((a|b)?){1000000}", ".*.*.*.*.*x", "^(^a|b$)*$", "(\\bx?\\b){200}",
        "(\\p{L}\\p{N}?){0,100}", "[^]{500,1000}"}) {
    SCOPED_TRACE(pattern);
    Survive(PlainRegexToIr, pattern);
  }
}

TEST(HostileGrammar, DeepNesting) {
  Survive(PlainRegexToIr, Repeated("(", 1000) + "a" + Repeated(")", 1000));
  Survive(PlainRegexToIr, Repeated("(", 100'000) + "a" + Repeated(")", 100'000));
  Survive(PlainRegexToIr, Repeated("(a|", 1500) + "b" + Repeated(")*", 1500));
  Survive(GbnfToIr, "root ::= " + Repeated("(", 1900) + "\"a\"" + Repeated(")", 1900));
  Survive(LarkToIr, "start: " + Repeated("[", 1900) + "\"a\"" + Repeated("]", 1900));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 3000; ++i) {
    chain += "r" + std::to_string(i) + " ::= \"a\" r" + std::to_string(i + 1) + " \"b\" | \"c\"\n";
  }
  Survive(GbnfToIr, chain + "r3000 ::= root");
}

TEST(HostileGrammar, RecursionWithoutContent) {
  Survive(GbnfToIr, "root ::= a | \"x\"\na ::= b | \"\"\nb ::= c\nc ::= a");
  Survive(GbnfToIr, "root ::= (\"\"*)* (root | \"\")* \"x\"");
  Survive(GbnfToIr, "root ::= (root | \"a\"?){0,1000000} \"b\"");
  Survive(LarkToIr, "start: (a*)*\na: b? | \"x\"\nb: a");
}

TEST(HostileGrammar, ManyAlternativesAndLongTexts) {
  std::string rules = "root ::= ";
  std::string bodies;
  for (int i = 0; i < 10'000; ++i) {
    rules += (i > 0 ? " | " : "") + ("r" + std::to_string(i));
    bodies +=
        "r" + std::to_string(i) + " ::= \"" + std::to_string(i * 7919) + "\" (\"(\" root \")\")?\n";
  }
  Survive(GbnfToIr, rules + "\n" + bodies);
  std::string literals = "root ::= \"x\"";
  for (int i = 0; i < 10'000; ++i) literals += " | \"word" + std::to_string(i * 31) + "\"";
  Survive(GbnfToIr, literals);
  Survive(PlainRegexToIr, std::string(1'000'000, 'a'));
  Survive(PlainRegexToIr, Repeated("a|", 300'000) + "b");
  Survive(PlainRegexToIr, std::string(5 << 20, 'a'));
  Survive(GbnfToIr, "root ::= " + Repeated("\"a\" ", 200'000));
}

TEST(HostileGrammar, DoublingRulesAreRefusedNotExpanded) {
  std::string text = "root ::= r0\n";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    text += "r" + std::to_string(i) + " ::= " + next + " " + next + "\n";
  }
  Survive(GbnfToIr, text + "r60 ::= \"a\"");
  Survive(GbnfToIr,
          "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root | root root | \"aa\"");
}

}  // namespace
}  // namespace deepinfer::grammar
