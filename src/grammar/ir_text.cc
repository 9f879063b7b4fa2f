#include "grammar/ir_text.h"

#include <fmt/format.h>

#include <iterator>

namespace deepinfer::grammar {
namespace {

std::string CountText(uint32_t min, uint32_t max) {
  return max == kUnbounded ? fmt::format("{{{},}}", min) : fmt::format("{{{},{}}}", min, max);
}

std::string LiteralText(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", byte);
    } else {
      text.push_back(c);
    }
  }
  return text + '"';
}

std::string NodeText(const GrammarIr& ir, NodeId id) {
  const Node& node = ir.node(id);
  std::string text;
  switch (node.kind) {
    case NodeKind::kEmpty:
      return "\"\"";
    case NodeKind::kNothing:
      return "[]";
    case NodeKind::kLiteral:
      return LiteralText(ir.literal(node));
    case NodeKind::kChars:
      for (const SymbolRange& range : ir.chars(node).ranges()) {
        fmt::format_to(std::back_inserter(text), "{:x}-{:x} ", range.first, range.last);
      }
      return "[" + text + "]";
    case NodeKind::kRegular:
      return fmt::format("<automaton of {} states>", ir.regular(node).num_states());
    case NodeKind::kSequence:
      for (const NodeId child : node.children) text += NodeText(ir, child) + " ";
      return text;
    case NodeKind::kChoice:
      for (const NodeId child : node.children) text += NodeText(ir, child) + " | ";
      text.resize(text.size() - 3);
      return "(" + text + ")";
    case NodeKind::kRepeat:
      return "(" + NodeText(ir, node.children[0]) + ")" + CountText(node.min, node.max);
    case NodeKind::kRule:
      return ir.rule_name(ir.rule(node));
    case NodeKind::kUnordered:
      for (const Unordered::Member& member : ir.unordered(node).members) {
        text += NodeText(ir, member.node);
        text += member.required ? "!" : "";
        text += member.repeatable ? "* , " : " , ";
      }
      return fmt::format("&{{ {}by {} }}{}", text, NodeText(ir, ir.unordered(node).separator),
                         CountText(ir.unordered(node).min, ir.unordered(node).max));
  }
  return text;
}

}  // namespace

std::string IrText(const GrammarIr& ir) {
  std::string text;
  for (uint32_t rule = 0; rule < ir.num_rules(); ++rule) {
    const RuleId id = static_cast<RuleId>(rule);
    text += ir.rule_name(id);
    text += " ::= ";
    text += ir.has_body(id) ? NodeText(ir, ir.body(id)) : "?";
    text += "\n";
  }
  return text;
}

}  // namespace deepinfer::grammar
