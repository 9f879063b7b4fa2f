// Random grammars written as GBNF and as Lark, read back and compared with their definition.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "grammar/gbnf.h"
#include "grammar/lark.h"
#include "grammar/matcher.h"
#include "tests/property/grammar/naive_language.h"
#include "tests/property/grammar/random_grammar.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kLongest = 5;

// Writes the nodes that RandomGrammar::DrawOrdered makes.
class Writer {
 public:
  Writer(const GrammarIr& ir, bool lark) : ir_(ir), lark_(lark) {}

  std::string Text() const {
    std::string text = lark_ ? "start: r0\n" : "root ::= r0\n";
    for (uint32_t rule = 0; rule < ir_.num_rules(); ++rule) {
      const RuleId id = static_cast<RuleId>(rule);
      text += ir_.rule_name(id) + (lark_ ? ": " : " ::= ") + Write(ir_.body(id)) + "\n";
    }
    return text;
  }

 private:
  std::string Write(NodeId id) const {
    const Node& node = ir_.node(id);
    switch (node.kind) {
      case NodeKind::kEmpty:
        return "\"\"";
      case NodeKind::kLiteral:
        return "\"" + std::string(ir_.literal(node)) + "\"";
      case NodeKind::kSequence:
        return List(node, " ");
      case NodeKind::kChoice:
        return List(node, " | ");
      case NodeKind::kRepeat:
        return "(" + Write(node.children[0]) + ")" + Counts(node);
      case NodeKind::kRule:
        return ir_.rule_name(ir_.rule(node));
      default:
        return Class(node);
    }
  }

  std::string List(const Node& node, const std::string& separator) const {
    std::string text = "(";
    for (size_t i = 0; i < node.children.size(); ++i) {
      text += (i > 0 ? separator : "") + Write(node.children[i]);
    }
    return text + ")";
  }

  // Nothing at all is a class without members.
  std::string Class(const Node& node) const {
    std::string text = "[";
    if (node.kind == NodeKind::kChars) {
      for (const SymbolRange& range : ir_.chars(node).ranges()) {
        text += std::string(1, static_cast<char>(range.first)) + "-" +
                std::string(1, static_cast<char>(range.last));
      }
    }
    return lark_ ? "/" + text + "]/" : text + "]";
  }

  std::string Counts(const Node& node) const {
    const std::string min = std::to_string(node.min);
    if (node.max == kUnbounded) {
      if (!lark_) return node.min == 0 ? "*" : "{" + min + ",}";
      return node.min == 0 ? "*" : "~" + min + " (" + Write(node.children[0]) + ")*";
    }
    const std::string max = std::to_string(node.max);
    return lark_ ? "~" + min + ".." + max : "{" + min + "," + max + "}";
  }

  const GrammarIr& ir_;
  const bool lark_;
};

std::shared_ptr<const Vocabulary> Letters() {
  static const auto vocabulary = *Vocabulary::Create({"", "a", "b", "c"}, {0});
  return vocabulary;
}

void CheckWords(const GrammarIr& ir, Result<GrammarIr> read, Budget& budget) {
  const NaiveLanguage language(ir, kLongest);
  if (!read) RC_LOG() << read.error().message;
  RC_ASSERT(read.has_value());
  const auto grammar = CompiledGrammar::Create(std::move(*read), Letters(), budget);
  RC_ASSERT(grammar.has_value() == !language.empty());
  if (!grammar) return;
  std::vector<std::string> words = {""};
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    Matcher matcher(*grammar);
    const bool viable = matcher.AdvanceBytes(word).has_value();
    RC_ASSERT(viable == language.IsPrefix(word));
    if (!viable) continue;
    RC_ASSERT(matcher.CanEnd() == language.IsWord(word));
    if (word.size() == kLongest) continue;
    for (const char c : {'a', 'b', 'c'}) words.push_back(word + c);
  }
}

RC_GTEST_PROP(GrammarEbnf, GbnfMeansWhatItsRulesDerive, ()) {
  const GrammarIr ir = RandomGrammar::DrawOrdered();
  const std::string text = Writer(ir, false).Text();
  RC_LOG() << text;
  Budget budget{Limits()};
  CheckWords(ir, GbnfToIr(text, budget), budget);
}

RC_GTEST_PROP(GrammarEbnf, LarkMeansWhatItsRulesDerive, ()) {
  const GrammarIr ir = RandomGrammar::DrawOrdered();
  const std::string text = Writer(ir, true).Text();
  RC_LOG() << text;
  Budget budget{Limits()};
  CheckWords(ir, LarkToIr(text, budget), budget);
}

}  // namespace
}  // namespace deepinfer::grammar
