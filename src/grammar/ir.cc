#include "grammar/ir.h"

#include <utility>

namespace deepinfer::grammar {

NodeId GrammarIr::Append(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId GrammarIr::Empty() {
  Node node;
  node.kind = NodeKind::kEmpty;
  return Append(std::move(node));
}

NodeId GrammarIr::Nothing() { return Append(Node()); }

NodeId GrammarIr::Literal(std::string_view bytes) {
  if (bytes.empty()) return Empty();
  Node node;
  node.kind = NodeKind::kLiteral;
  node.index = static_cast<uint32_t>(literals_.size());
  literals_.emplace_back(bytes);
  return Append(std::move(node));
}

NodeId GrammarIr::Chars(CharSet set) {
  if (set.empty()) return Nothing();
  Node node;
  node.kind = NodeKind::kChars;
  node.index = static_cast<uint32_t>(char_sets_.size());
  char_sets_.push_back(std::move(set));
  return Append(std::move(node));
}

NodeId GrammarIr::Regular(Dfa bytes) {
  if (bytes.empty()) return Nothing();
  Node node;
  node.kind = NodeKind::kRegular;
  node.index = static_cast<uint32_t>(dfas_.size());
  dfas_.push_back(std::move(bytes));
  return Append(std::move(node));
}

NodeId GrammarIr::Sequence(std::span<const NodeId> parts) {
  Node node;
  node.kind = NodeKind::kSequence;
  for (const NodeId part : parts) {
    const Node& child = this->node(part);
    if (child.kind == NodeKind::kNothing) return part;
    if (child.kind == NodeKind::kEmpty) continue;
    if (child.kind == NodeKind::kSequence) {
      node.children.insert(node.children.end(), child.children.begin(), child.children.end());
    } else {
      node.children.push_back(part);
    }
  }
  if (node.children.empty()) return Empty();
  if (node.children.size() == 1) return node.children[0];
  return Append(std::move(node));
}

NodeId GrammarIr::Choice(std::span<const NodeId> parts) {
  Node node;
  node.kind = NodeKind::kChoice;
  for (const NodeId part : parts) {
    const Node& child = this->node(part);
    if (child.kind == NodeKind::kNothing) continue;
    if (child.kind == NodeKind::kChoice) {
      node.children.insert(node.children.end(), child.children.begin(), child.children.end());
    } else {
      node.children.push_back(part);
    }
  }
  if (node.children.empty()) return Nothing();
  if (node.children.size() == 1) return node.children[0];
  return Append(std::move(node));
}

NodeId GrammarIr::Repeat(NodeId child, uint32_t min, uint32_t max) {
  const NodeKind kind = node(child).kind;
  if (max == 0 || kind == NodeKind::kEmpty) return Empty();
  if (kind == NodeKind::kNothing) return min == 0 ? Empty() : child;
  if (min == 1 && max == 1) return child;
  Node node;
  node.kind = NodeKind::kRepeat;
  node.min = min;
  node.max = max;
  node.children = {child};
  return Append(std::move(node));
}

NodeId GrammarIr::Any(Unordered unordered) {
  Node node;
  node.kind = NodeKind::kUnordered;
  node.index = static_cast<uint32_t>(unordered_.size());
  unordered_.push_back(std::move(unordered));
  return Append(std::move(node));
}

NodeId GrammarIr::Call(RuleId rule) {
  Node node;
  node.kind = NodeKind::kRule;
  node.index = Index(rule);
  return Append(std::move(node));
}

RuleId GrammarIr::AddRule(std::string name) {
  rules_.push_back({std::move(name), {}});
  return static_cast<RuleId>(rules_.size() - 1);
}

void GrammarIr::SetBody(RuleId rule, NodeId body) {
  rules_[Index(rule)].body = body;
  rules_[Index(rule)].has_body = true;
}

void GrammarIr::SetRepeat(NodeId repeat, NodeId child, uint32_t min, uint32_t max) {
  Node& node = nodes_[Index(repeat)];
  node.min = min;
  node.max = max;
  node.children = {child};
}

RuleId GrammarIr::AddRule(std::string name, NodeId body) {
  const RuleId rule = AddRule(std::move(name));
  SetBody(rule, body);
  return rule;
}

}  // namespace deepinfer::grammar
