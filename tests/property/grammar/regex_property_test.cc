// Random regular expressions against PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <gtest/gtest.h>
#include <pcre2.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "grammar/matcher.h"
#include "grammar/regex.h"
#include "grammar/utf8.h"

namespace deepinfer::grammar {
namespace {

class Pcre {
 public:
  // PCRE2 with Unicode; `whole` anchors both ends.
  Pcre(const std::string& pattern, bool whole) {
    const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_DUPNAMES |
                             (whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0);
    PCRE2_SIZE offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options,
                          &error_, &offset, nullptr);
    if (code_ != nullptr) data_ = pcre2_match_data_create_from_pattern(code_, nullptr);
    pcre2_set_match_limit(context_, 100000);
  }
  Pcre(const Pcre&) = delete;
  Pcre& operator=(const Pcre&) = delete;
  ~Pcre() {
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
    pcre2_code_free(code_);
  }

  bool ok() const { return code_ != nullptr; }
  // PCRE2 bounds the size of what it compiles to ("regular expression is too large").
  bool too_large() const { return error_ == 120; }
  bool Matches(const std::string& text) const {
    const int rc = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                               data_, context_);
    // PCRE2 backtracks, for some patterns without end; then it has no verdict to compare with.
    if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT) RC_DISCARD("undecided");
    RC_ASSERT(rc >= 0 || rc == PCRE2_ERROR_NOMATCH);
    return rc >= 0;
  }

 private:
  int error_ = 0;
  pcre2_code* code_ = nullptr;
  pcre2_match_data* data_ = nullptr;
  pcre2_match_context* context_ = pcre2_match_context_create(nullptr);
};

int Below(int n) { return *rc::gen::resize(100, rc::gen::inRange(0, n)); }

std::string DrawAtom(int depth, bool assertions);

std::string DrawPattern(int depth, bool assertions) {
  std::string pattern;
  const int alternatives = 1 + Below(depth == 0 ? 1 : 3);
  for (int i = 0; i < alternatives; ++i) {
    if (i > 0) pattern += "|";
    const int parts = Below(4);
    for (int j = 0; j < parts; ++j) {
      if (assertions && Below(6) == 0) {
        const char* const kAssertions[] = {"^", "$", "\\b", "\\B", "\\A", "\\z"};
        pattern += kAssertions[Below(6)];
        continue;
      }
      pattern += DrawAtom(depth, assertions);
      // Long counts are counted at run time where there are no assertions, and large automata else.
      const char* const long_count = assertions ? "{0,12}" : "{0,300}";
      const char* const kQuantifiers[] = {"",      "",     "",      "*",        "+",  "?",   "{2}",
                                          "{0,3}", "{1,}", "{2,4}", long_count, "*?", "{3,}"};
      pattern += kQuantifiers[Below(13)];
    }
  }
  return pattern;
}

std::string DrawAtom(int depth, bool assertions) {
  const char* const kAtoms[] = {"a",      "b",       "é",      "1",      "_",   "[ab]",  "[^a]",
                                "[a-c]",  "\\d",     "\\w",    "\\W",    ".",   "\\x62", "[é-ü]",
                                "\\p{L}", "\\P{Lu}", "[\\d_]", "[^\\w]", "\\.", "[-a]",  "\\x{e9}"};
  if (depth > 0 && Below(4) == 0) return "(" + DrawPattern(depth - 1, assertions) + ")";
  if (depth > 0 && Below(8) == 0) return "(?:" + DrawPattern(depth - 1, assertions) + ")";
  return kAtoms[Below(21)];
}

std::string DrawText() {
  const char* const kChars[] = {"a", "b", "é", "1", "_", ".", "-", "c", "ü", " ", "A", "ß"};
  std::string text;
  const int length = Below(8);
  for (int i = 0; i < length; ++i) text += kChars[Below(12)];
  return text;
}

std::vector<uint32_t> CodePoints(const std::string& text) {
  std::vector<uint32_t> result;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    result.push_back(c.code_point);
    pos += c.length;
  }
  return result;
}

RC_GTEST_PROP(GrammarRegex, SearchesAsPcre2Does, ()) {
  const std::string pattern = DrawPattern(2, true);
  Budget budget{Limits()};
  const auto dfa = RegexToDfa(pattern, RegexMatch::kSearch, {}, budget);
  const Pcre pcre(pattern, false);
  RC_LOG() << "pattern " << pattern << "\n";
  if (pcre.too_large()) RC_DISCARD("too large for PCRE2");
  if (!dfa && dfa.error().code == ErrorCode::kResourceExhausted) RC_DISCARD("too large");
  if (!dfa) RC_LOG() << dfa.error().message;
  RC_ASSERT(dfa.has_value() && pcre.ok());
  for (int i = 0; i < 20; ++i) {
    const std::string text = DrawText();
    RC_LOG() << "text '" << text << "'\n";
    RC_ASSERT(dfa->Accepts(CodePoints(text)) == pcre.Matches(text));
  }
}

std::shared_ptr<const Vocabulary> Bytes() {
  static const auto vocabulary = [] {
    std::vector<std::string> tokens = {""};
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    return *Vocabulary::Create(std::move(tokens), {0});
  }();
  return vocabulary;
}

RC_GTEST_PROP(GrammarRegex, MatchesWholeTextsAsPcre2Does, (bool assertions)) {
  const std::string pattern = DrawPattern(2, assertions);
  Budget budget{Limits()};
  const Pcre pcre(pattern, true);
  RC_LOG() << "pattern " << pattern << "\n";
  if (pcre.too_large()) RC_DISCARD("too large for PCRE2");
  auto ir = RegexToIr(pattern, {}, budget);
  if (!ir && ir.error().code == ErrorCode::kResourceExhausted) RC_DISCARD("too large");
  if (!ir) RC_LOG() << ir.error().message;
  RC_ASSERT(ir.has_value() && pcre.ok());
  const auto grammar = CompiledGrammar::Create(std::move(*ir), Bytes(), budget);
  if (!grammar) RC_LOG() << grammar.error().message;
  if (!grammar && grammar.error().code == ErrorCode::kResourceExhausted) RC_DISCARD("too large");
  const bool nothing =
      !grammar && grammar.error().message.find("matches no text") != std::string::npos;
  RC_ASSERT(grammar.has_value() || nothing);
  for (int i = 0; i < 20; ++i) {
    const std::string text = DrawText();
    RC_LOG() << "text '" << text << "'\n";
    if (nothing) {
      RC_ASSERT(!pcre.Matches(text));
      continue;
    }
    Matcher matcher(*grammar);
    const bool accepted = matcher.AdvanceBytes(text).has_value() && matcher.CanEnd();
    RC_ASSERT(accepted == pcre.Matches(text));
  }
}

}  // namespace
}  // namespace deepinfer::grammar
