#include "grammar/ir_analysis.h"

#include <algorithm>
#include <utility>

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};

// Calls visit(child) for every node that `node` refers to within its rule.
template <typename Visit>
void ForEachChild(const GrammarIr& ir, const Node& node, const Visit& visit) {
  for (const NodeId child : node.children) visit(child);
  if (node.kind != NodeKind::kUnordered) return;
  const Unordered& unordered = ir.unordered(node);
  for (const Unordered::Member& member : unordered.members) visit(member.node);
  visit(unordered.separator);
}

bool IsCallOf(const GrammarIr& ir, NodeId id, RuleId rule) {
  const Node& node = ir.node(id);
  return node.kind == NodeKind::kRule && ir.rule(node) == rule;
}

// Both facts are monotone: evaluated from the children's present values, nodes only turn true.
class FixPoint {
 public:
  FixPoint(const GrammarIr& ir, bool for_nullable)
      : ir_(ir),
        for_nullable_(for_nullable),
        holds_(ir.num_nodes(), false),
        rule_holds_(ir.num_rules(), false),
        parents_(ir.num_nodes()),
        callers_(ir.num_rules()),
        bodies_(ir.num_nodes()) {}

  std::vector<bool> Run() {
    for (uint32_t i = 0; i < ir_.num_nodes(); ++i) {
      const Node& node = ir_.node(static_cast<NodeId>(i));
      ForEachChild(ir_, node,
                   [&](NodeId child) { parents_[GrammarIr::Index(child)].push_back(i); });
      if (node.kind == NodeKind::kRule) callers_[node.index].push_back(i);
    }
    for (uint32_t rule = 0; rule < ir_.num_rules(); ++rule) {
      const RuleId id = static_cast<RuleId>(rule);
      if (ir_.has_body(id)) bodies_[GrammarIr::Index(ir_.body(id))].push_back(rule);
    }
    for (uint32_t i = 0; i < ir_.num_nodes(); ++i) Check(i);
    while (!pending_.empty()) {
      const uint32_t done = pending_.back();
      pending_.pop_back();
      for (const uint32_t parent : parents_[done]) Check(parent);
      for (const uint32_t rule : bodies_[done]) {
        rule_holds_[rule] = true;
        for (const uint32_t caller : callers_[rule]) Check(caller);
      }
    }
    return std::move(holds_);
  }

 private:
  void Check(uint32_t i) {
    if (holds_[i] || !Evaluate(ir_.node(static_cast<NodeId>(i)))) return;
    holds_[i] = true;
    pending_.push_back(i);
  }

  bool Holds(NodeId id) const { return holds_[GrammarIr::Index(id)]; }

  bool Evaluate(const Node& node) const {
    switch (node.kind) {
      case NodeKind::kEmpty:
        return true;
      case NodeKind::kNothing:
        return false;
      case NodeKind::kLiteral:
      case NodeKind::kChars:
        return !for_nullable_;
      case NodeKind::kRegular:
        return !for_nullable_ || ir_.regular(node).accepts_empty();
      case NodeKind::kSequence:
        return std::all_of(node.children.begin(), node.children.end(),
                           [this](NodeId child) { return Holds(child); });
      case NodeKind::kChoice:
        return std::any_of(node.children.begin(), node.children.end(),
                           [this](NodeId child) { return Holds(child); });
      case NodeKind::kRepeat:
        return node.min == 0 || Holds(node.children[0]);
      case NodeKind::kRule:
        return rule_holds_[node.index];
      case NodeKind::kUnordered:
        return EvaluateUnordered(ir_.unordered(node));
    }
    return false;
  }

  // Members are never empty, so only no member at all is the empty string.
  bool EvaluateUnordered(const Unordered& unordered) const {
    uint64_t required = 0;
    uint64_t available = 0;
    for (const Unordered::Member& member : unordered.members) {
      if (member.required) ++required;
      if (for_nullable_) continue;
      if (member.required && !Holds(member.node)) return false;
      if (Holds(member.node)) available += member.repeatable ? kUnbounded : 1;
    }
    if (for_nullable_) return required == 0 && unordered.min == 0;
    const uint64_t least = std::max<uint64_t>(unordered.min, required);
    if (least > unordered.max || available < unordered.min) return false;
    return least <= 1 || Holds(unordered.separator);
  }

  const GrammarIr& ir_;
  const bool for_nullable_;
  std::vector<bool> holds_, rule_holds_;
  std::vector<std::vector<uint32_t>> parents_, callers_, bodies_;
  std::vector<uint32_t> pending_;
};

// The rules called from each rule's body, with repetitions; stops at nodes already seen in it.
std::vector<std::vector<uint32_t>> CollectCalls(const GrammarIr& ir) {
  std::vector<std::vector<uint32_t>> calls(ir.num_rules());
  std::vector<uint32_t> seen_in(ir.num_nodes(), kNone);
  std::vector<NodeId> stack;
  for (uint32_t rule = 0; rule < ir.num_rules(); ++rule) {
    if (!ir.has_body(static_cast<RuleId>(rule))) continue;
    stack = {ir.body(static_cast<RuleId>(rule))};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      const Node& node = ir.node(id);
      if (node.kind == NodeKind::kRule) calls[rule].push_back(node.index);
      if (seen_in[GrammarIr::Index(id)] == rule) continue;
      seen_in[GrammarIr::Index(id)] = rule;
      ForEachChild(ir, node, [&](NodeId child) { stack.push_back(child); });
    }
  }
  return calls;
}

}  // namespace

Result<IrFacts> IrFacts::Of(const GrammarIr& ir, Budget& budget) {
  DI_RETURN_IF_ERROR(budget.Charge(4 * (ir.num_nodes() + ir.num_rules())));
  IrFacts facts;
  facts.nullable_ = FixPoint(ir, true).Run();
  facts.productive_ = FixPoint(ir, false).Run();
  facts.FindOrder(ir, CollectCalls(ir));
  for (const RuleId rule : facts.order_) {
    if (!ir.has_body(rule)) {
      return MakeError(ErrorCode::kInvalidArgument, "rule {} is used but not defined",
                       ir.rule_name(rule));
    }
  }
  return facts;
}

// Tarjan's algorithm from the root, without recursion.
void IrFacts::FindOrder(const GrammarIr& ir, std::vector<std::vector<uint32_t>> calls) {
  const size_t n = ir.num_rules();
  recursive_.assign(n, false);
  uses_.assign(n, 0);
  std::vector<uint32_t> index(n, kNone), low(n, 0), stack;
  std::vector<bool> open(n, false);
  struct Visit {
    uint32_t rule;
    uint32_t call;
  };
  std::vector<Visit> visits = {{GrammarIr::Index(ir.root()), 0}};
  uint32_t next_index = 0;
  while (!visits.empty()) {
    auto& [rule, call] = visits.back();
    if (call == 0 && index[rule] == kNone) {
      index[rule] = low[rule] = next_index++;
      open[rule] = true;
      stack.push_back(rule);
    }
    if (call < calls[rule].size()) {
      const uint32_t callee = calls[rule][call++];
      ++uses_[callee];
      if (callee == rule) recursive_[rule] = true;
      if (index[callee] == kNone) {
        visits.push_back({callee, 0});
      } else if (open[callee]) {
        low[rule] = std::min(low[rule], index[callee]);
      }
      continue;
    }
    const uint32_t done = rule;
    if (low[done] == index[done]) {
      const bool alone = stack.back() == done;
      uint32_t member;
      do {
        member = stack.back();
        stack.pop_back();
        open[member] = false;
        if (!alone) recursive_[member] = true;
        order_.push_back(static_cast<RuleId>(member));
      } while (member != done);
    }
    visits.pop_back();
    if (!visits.empty()) low[visits.back().rule] = std::min(low[visits.back().rule], low[done]);
  }
}

void UnrollEndRecursion(GrammarIr& ir) {
  for (uint32_t index = 0; index < ir.num_rules(); ++index) {
    const RuleId rule = static_cast<RuleId>(index);
    if (!ir.has_body(rule) || ir.node(ir.body(rule)).kind != NodeKind::kChoice) continue;
    for (const bool left : {true, false}) {
      const Node body = ir.node(ir.body(rule));
      if (body.kind != NodeKind::kChoice) break;
      std::vector<NodeId> rest;
      std::vector<NodeId> steps;
      for (const NodeId alternative : body.children) {
        const Node node = ir.node(alternative);
        if (IsCallOf(ir, alternative, rule)) continue;  // A = A adds nothing
        if (node.kind != NodeKind::kSequence ||
            !IsCallOf(ir, left ? node.children.front() : node.children.back(), rule)) {
          rest.push_back(alternative);
          continue;
        }
        const auto parts = std::span(node.children);
        steps.push_back(ir.Sequence(left ? parts.subspan(1) : parts.first(parts.size() - 1)));
      }
      if (steps.empty() && rest.size() == body.children.size()) continue;
      const NodeId loop = ir.Repeat(ir.Choice(steps), 0, kUnbounded);
      const NodeId once = ir.Choice(rest);
      ir.SetBody(rule, ir.Sequence(left ? std::vector{once, loop} : std::vector{loop, once}));
    }
  }
}

}  // namespace deepinfer::grammar
