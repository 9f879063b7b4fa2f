#include <algorithm>
#include <unordered_map>
#include <utility>

#include "grammar/ir_analysis.h"

namespace deepinfer::grammar {
namespace {

// Makes nodes for languages without the empty string. Adds nodes and rules to the IR.
class NonEmptyRewriter {
 public:
  NonEmptyRewriter(GrammarIr& ir, const IrFacts& facts) : ir_(ir), facts_(facts) {}

  NodeId NonEmpty(NodeId node) {
    // Nodes made here are never empty themselves, and facts do not cover them.
    if (!facts_.nullable(node)) return node;
    const auto known = nodes_.find(GrammarIr::Index(node));
    if (known != nodes_.end()) return known->second;
    const NodeId result = Rewrite(node);
    nodes_[GrammarIr::Index(node)] = result;
    return result;
  }

 private:
  NodeId Rewrite(NodeId id) {
    const Node node = ir_.node(id);  // a copy: the IR grows below
    switch (node.kind) {
      case NodeKind::kRegular: {
        // A fresh start state that does not accept.
        const Dfa dfa = ir_.regular(node);
        Dfa result = Dfa::Builder();
        std::vector<Edge> edges;
        for (uint32_t state = 0; state <= dfa.num_states(); ++state) {
          const auto source = dfa.edges(state == 0 ? 0 : state - 1);
          edges.assign(source.begin(), source.end());
          for (Edge& edge : edges) ++edge.target;
          result.AppendState(state > 0 && dfa.accepting(state - 1), edges);
        }
        return ir_.Regular(Trim(std::move(result)));
      }
      case NodeKind::kSequence: {
        // The first part that is not empty, and all parts after it. Every part is nullable.
        std::vector<NodeId> choices;
        for (size_t i = 0; i < node.children.size(); ++i) {
          std::vector<NodeId> parts(node.children.begin() + static_cast<ptrdiff_t>(i),
                                    node.children.end());
          parts[0] = NonEmpty(parts[0]);
          choices.push_back(ir_.Sequence(parts));
        }
        return ir_.Choice(choices);
      }
      case NodeKind::kChoice: {
        std::vector<NodeId> choices;
        for (const NodeId child : node.children) choices.push_back(NonEmpty(child));
        return ir_.Choice(choices);
      }
      case NodeKind::kRepeat:
        return ir_.Repeat(NonEmpty(node.children[0]), 1, node.max);
      case NodeKind::kRule: {
        const auto [entry, is_new] = rules_.emplace(node.index, RuleId{});
        if (!is_new) return ir_.Call(entry->second);
        const RuleId source = static_cast<RuleId>(node.index);
        const RuleId rule = ir_.AddRule(ir_.rule_name(source) + " (not empty)");
        entry->second = rule;
        ir_.SetBody(rule, NonEmpty(ir_.body(source)));
        return ir_.Call(rule);
      }
      case NodeKind::kUnordered: {
        Unordered unordered = ir_.unordered(node);
        unordered.min = std::max(unordered.min, 1u);
        return ir_.Any(std::move(unordered));
      }
      default:  // kEmpty; the rest is never nullable
        return ir_.Nothing();
    }
  }

  GrammarIr& ir_;
  const IrFacts& facts_;
  std::unordered_map<uint32_t, NodeId> nodes_;
  std::unordered_map<uint32_t, RuleId> rules_;
};

}  // namespace

void CountNonEmptyOnly(GrammarIr& ir, const IrFacts& facts) {
  NonEmptyRewriter rewriter(ir, facts);
  const size_t num_nodes = ir.num_nodes();  // those that `facts` covers
  for (uint32_t i = 0; i < num_nodes; ++i) {
    const NodeId id = static_cast<NodeId>(i);
    const Node& node = ir.node(id);
    if (node.kind != NodeKind::kRepeat || !facts.nullable(node.children[0])) continue;
    const bool counted = node.max == kUnbounded ? node.min > 1 : node.max > 1;
    if (!counted) continue;
    const uint32_t max = node.max;
    ir.SetRepeat(id, rewriter.NonEmpty(node.children[0]), 0, max);
  }
}

}  // namespace deepinfer::grammar
