#include "grammar/lower.h"

#include <algorithm>
#include <utility>

namespace deepinfer::grammar {
namespace {

// A counted repetition of at most this many states is written out; longer ones count.
constexpr uint64_t kMaxCopiedStates = 256;
// A regular rule of at most this many states is copied into every caller: a call costs more. Rules
// that only match a few bytes (one character of a string, say) are called most often.
constexpr size_t kMaxCopiedRule = 8;
constexpr size_t kMaxCopiedFiniteRule = 64;
// A rule of one caller is copied, too, unless rules that nest would copy each other's copies.
constexpr size_t kMaxCopiedSingleRule = 512;
constexpr uint32_t kMaxCost = 1u << 20;

bool IsRegular(const Dfa& dfa) {
  for (uint32_t state = 0; state < dfa.num_states(); ++state) {
    const auto edges = dfa.edges(state);
    if (!edges.empty() && edges.back().last > 0xff) return false;
  }
  return true;
}

// Whether the language is finite. States of a cycle come before each other in any numbering, so it
// is enough to look for an order in which all edges go forward.
bool IsFinite(const Dfa& dfa) {
  std::vector<uint32_t> incoming(dfa.num_states(), 0);
  for (uint32_t state = 0; state < dfa.num_states(); ++state) {
    for (const Edge& edge : dfa.edges(state)) ++incoming[edge.target];
  }
  std::vector<uint32_t> ready;
  if (incoming[0] == 0) ready.push_back(0);
  size_t ordered = 0;
  for (; ordered < ready.size(); ++ordered) {
    for (const Edge& edge : dfa.edges(ready[ordered])) {
      if (--incoming[edge.target] == 0) ready.push_back(edge.target);
    }
  }
  return ordered == dfa.num_states();
}

}  // namespace

RuleLowering::RuleLowering(const GrammarIr& ir, const IrFacts& facts, Budget& budget)
    : ir_(ir), facts_(facts), budget_(budget), copied_(ir.num_rules()) {
  out_.rules.resize(ir.num_rules());
}

Result<LoweredRules> RuleLowering::Run() {
  size_t states = 0;
  for (const RuleId rule : facts_.order()) {
    const uint32_t index = GrammarIr::Index(rule);
    if (!facts_.productive(ir_.body(rule))) continue;
    DI_ASSIGN_OR_RETURN(Dfa dfa, LowerRule(ir_.body(rule), 0));
    states += dfa.num_states();
    DI_RETURN_IF_ERROR(budget_.Charge(0, states));
    const bool single = facts_.uses(rule) == 1 && dfa.num_states() <= kMaxCopiedSingleRule;
    const bool small = dfa.num_states() <= kMaxCopiedRule || single ||
                       (dfa.num_states() <= kMaxCopiedFiniteRule && IsFinite(dfa));
    if (rule != ir_.root() && small && !ir_.is_shared(rule) && !facts_.recursive(rule) &&
        IsRegular(dfa)) {
      copied_[index] = std::move(dfa);
    } else {
      out_.rules[index] = std::move(dfa);
    }
  }
  return std::move(out_);
}

Result<Dfa> RuleLowering::LowerRule(NodeId body, uint32_t depth) {
  // What is one automaton already needs nothing; front ends minimise theirs.
  if (const Node& node = ir_.node(body); node.kind == NodeKind::kRegular) {
    const Dfa& dfa = ir_.regular(node);
    DI_RETURN_IF_ERROR(budget_.Charge(dfa.num_edges(), dfa.num_states()));
    return dfa;
  }
  Nfa nfa;
  const uint32_t end = nfa.AddState();
  nfa.SetAccepting(end);
  DI_RETURN_IF_ERROR(Lower(nfa, body, 0, end, Place{false, depth}));
  DI_ASSIGN_OR_RETURN(const Dfa dfa, Determinise(nfa, budget_));
  return Minimise(dfa, budget_);
}

Status RuleLowering::Lower(Nfa& nfa, NodeId id, uint32_t from, uint32_t to, Place place) {
  DI_RETURN_IF_ERROR(budget_.Charge(1, nfa.num_states()));
  if (++place.depth > budget_.limits().max_depth) {
    return MakeError(ErrorCode::kResourceExhausted, "the grammar nests more than {} levels deep",
                     budget_.limits().max_depth);
  }
  const Node& node = ir_.node(id);
  if (!facts_.productive(id)) return {};
  switch (node.kind) {
    case NodeKind::kNothing:
      return {};
    case NodeKind::kEmpty:
      nfa.AddEmptyMove(from, to);
      return {};
    case NodeKind::kLiteral:
      LowerLiteral(nfa, ir_.literal(node), from, to);
      return {};
    case NodeKind::kChars:
      for (const SymbolRange& range : ir_.chars(node).ranges()) {
        AddUtf8(nfa, range.first, range.last, from, to);
      }
      return {};
    case NodeKind::kRegular:
      nfa.AddDfa(from, ir_.regular(node), to);
      return {};
    case NodeKind::kSequence: {
      uint32_t at = from;
      for (size_t i = 0; i < node.children.size(); ++i) {
        const uint32_t next = i + 1 == node.children.size() ? to : nfa.AddState();
        DI_RETURN_IF_ERROR(Lower(nfa, node.children[i], at, next, place));
        at = next;
      }
      return {};
    }
    case NodeKind::kChoice:
      for (const NodeId child : node.children) {
        DI_RETURN_IF_ERROR(Lower(nfa, child, from, to, place));
      }
      return {};
    case NodeKind::kRepeat:
      return LowerRepeat(nfa, id, from, to, place);
    case NodeKind::kRule:
      return LowerCall(nfa, node.index, from, to);
    case NodeKind::kUnordered:
      return LowerUnordered(nfa, id, from, to, place);
  }
  return {};
}

void RuleLowering::LowerLiteral(Nfa& nfa, std::string_view bytes, uint32_t from, uint32_t to) {
  uint32_t at = from;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint32_t next = i + 1 == bytes.size() ? to : nfa.AddState();
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    nfa.AddEdge(at, byte, byte, next);
    at = next;
  }
}

Status RuleLowering::LowerCall(Nfa& nfa, uint32_t rule, uint32_t from, uint32_t to) {
  if (rule < copied_.size() && copied_[rule]) {
    DI_RETURN_IF_ERROR(budget_.Charge(copied_[rule]->num_edges(), nfa.num_states()));
    nfa.AddDfa(from, *copied_[rule], to);
  } else {
    nfa.AddEdge(from, kCallSymbol + rule, kCallSymbol + rule, to);
  }
  return {};
}

uint32_t RuleLowering::CostOf(NodeId id) {
  const auto known = costs_.find(GrammarIr::Index(id));
  if (known != costs_.end()) return known->second;
  const Node& node = ir_.node(id);
  uint64_t cost = 1;
  switch (node.kind) {
    case NodeKind::kLiteral:
      cost = ir_.literal(node).size();
      break;
    case NodeKind::kChars:
      for (const SymbolRange& range : ir_.chars(node).ranges()) cost += range.last < 0x80 ? 0 : 3;
      break;
    case NodeKind::kRegular:
      cost = ir_.regular(node).num_states();
      break;
    case NodeKind::kRule:
      if (copied_[node.index]) cost = copied_[node.index]->num_states();
      break;
    case NodeKind::kUnordered:
      cost = kMaxCost;  // never copied
      break;
    case NodeKind::kRepeat: {
      const uint64_t copies = node.max == kUnbounded ? std::max(node.min, 1u) : node.max;
      cost = copies * CostOf(node.children[0]);
      if (cost > kMaxCopiedStates) cost = CostOf(node.children[0]) + 2;
      break;
    }
    default:
      for (const NodeId child : node.children) cost += CostOf(child);
  }
  const uint32_t result = static_cast<uint32_t>(std::min<uint64_t>(cost, kMaxCost));
  costs_[GrammarIr::Index(id)] = result;
  return result;
}

Status RuleLowering::LowerRepeat(Nfa& nfa, NodeId id, uint32_t from, uint32_t to, Place place) {
  const Node& node = ir_.node(id);
  if (node.max == kUnbounded && node.min <= 1) {
    const uint32_t begin = nfa.AddState();
    const uint32_t end = nfa.AddState();
    nfa.AddEmptyMove(from, begin);
    nfa.AddEmptyMove(end, begin);
    nfa.AddEmptyMove(end, to);
    if (node.min == 0) nfa.AddEmptyMove(begin, to);
    return Lower(nfa, node.children[0], begin, end, place);
  }
  const uint64_t copies = node.max == kUnbounded ? uint64_t{node.min} + 1 : node.max;
  if (copies == 1 || copies * CostOf(node.children[0]) <= kMaxCopiedStates) {
    return LowerCopies(nfa, node, from, to, place);
  }
  if (place.register_taken) return Outline(nfa, id, from, to, place);
  return LowerCounted(nfa, node, from, to, place);
}

Status RuleLowering::LowerCopies(Nfa& nfa, const Node& node, uint32_t from, uint32_t to,
                                 Place place) {
  const bool bounded = node.max != kUnbounded;
  uint32_t at = nfa.AddState();
  nfa.AddEmptyMove(from, at);
  for (uint32_t i = 0; i < (bounded ? node.max : node.min); ++i) {
    if (i >= node.min) nfa.AddEmptyMove(at, to);
    const uint32_t next = nfa.AddState();
    DI_RETURN_IF_ERROR(Lower(nfa, node.children[0], at, next, place));
    at = next;
  }
  nfa.AddEmptyMove(at, to);
  if (bounded) return {};
  const uint32_t end = nfa.AddState();
  nfa.AddEmptyMove(end, at);
  return Lower(nfa, node.children[0], at, end, place);
}

Status RuleLowering::LowerCounted(Nfa& nfa, const Node& node, uint32_t from, uint32_t to,
                                  Place place) {
  const uint32_t loop = static_cast<uint32_t>(out_.loops.size());
  out_.loops.push_back({node.min, node.max});
  place.register_taken = true;
  const uint32_t head = nfa.AddState();
  const uint32_t body = nfa.AddState();
  AddOp(nfa, from, {OpKind::kEnterLoop, loop}, head);
  AddOp(nfa, head, {OpKind::kAgain, loop}, body);
  AddOp(nfa, head, {OpKind::kLeaveLoop, loop}, to);
  return Lower(nfa, node.children[0], body, head, place);
}

Result<uint32_t> RuleLowering::AddMemberSet(const Unordered& unordered) {
  uint32_t max = unordered.max;
  std::vector<MemberSets::Member> members;
  bool repeatable = false;
  for (const Unordered::Member& member : unordered.members) {
    if (facts_.nullable(member.node)) {
      return MakeError(ErrorCode::kInvalidArgument, "an unordered member may be empty");
    }
    if (!facts_.productive(member.node)) continue;
    members.push_back({member.required, member.repeatable});
    repeatable |= member.repeatable;
  }
  if (!repeatable && max >= members.size()) max = kUnbounded;
  if (unordered.min > MemberSets::kMaxCount || (max != kUnbounded && max > MemberSets::kMaxCount) ||
      members.size() > 0xffff) {
    return MakeError(ErrorCode::kResourceExhausted, "counts of unordered members may not exceed {}",
                     MemberSets::kMaxCount);
  }
  out_.member_sets.push_back(
      std::make_unique<MemberSets>(std::move(members), unordered.min, max, unordered.ordered));
  return static_cast<uint32_t>(out_.member_sets.size()) - 1;
}

Status RuleLowering::LowerUnordered(Nfa& nfa, NodeId id, uint32_t from, uint32_t to, Place place) {
  if (place.register_taken) return Outline(nfa, id, from, to, place);
  place.register_taken = true;
  const Unordered& unordered = ir_.unordered(ir_.node(id));
  DI_ASSIGN_OR_RETURN(const uint32_t set, AddMemberSet(unordered));
  const uint32_t begin = nfa.AddState();
  const uint32_t member_begin = nfa.AddState();
  const uint32_t member_end = nfa.AddState();
  const uint32_t separator = nfa.AddState();
  AddOp(nfa, from, {OpKind::kEnterSet, set}, begin);
  const bool may_be_empty =
      unordered.min == 0 && std::none_of(unordered.members.begin(), unordered.members.end(),
                                         [](const auto& member) { return member.required; });
  if (may_be_empty) AddOp(nfa, begin, {OpKind::kLeaveSet, set}, to);
  nfa.AddEmptyMove(begin, member_begin);
  AddOp(nfa, member_end, {OpKind::kLeaveSet, set}, to);
  AddOp(nfa, member_end, {OpKind::kMore, set}, separator);
  DI_RETURN_IF_ERROR(Lower(nfa, unordered.separator, separator, member_begin, place));
  uint32_t number = 0;
  for (const Unordered::Member& member : unordered.members) {
    if (!facts_.productive(member.node)) continue;
    const uint32_t start = nfa.AddState();
    AddOp(nfa, member_begin, {OpKind::kSelect, set, number++}, start);
    DI_RETURN_IF_ERROR(Lower(nfa, member.node, start, member_end, place));
  }
  return {};
}

Status RuleLowering::Outline(Nfa& nfa, NodeId id, uint32_t from, uint32_t to, Place place) {
  const auto known = outlined_.find(GrammarIr::Index(id));
  if (known != outlined_.end()) return LowerCall(nfa, known->second, from, to);
  DI_ASSIGN_OR_RETURN(Dfa dfa, LowerRule(id, place.depth));
  const uint32_t rule = static_cast<uint32_t>(out_.rules.size());
  out_.rules.push_back(std::move(dfa));
  outlined_[GrammarIr::Index(id)] = rule;
  return LowerCall(nfa, rule, from, to);
}

void RuleLowering::AddOp(Nfa& nfa, uint32_t from, Op op, uint32_t to) {
  const auto key = std::pair(uint64_t{op.object} << 8 | static_cast<uint8_t>(op.kind), op.member);
  const auto [entry, is_new] = op_numbers_.emplace(key, static_cast<uint32_t>(out_.ops.size()));
  if (is_new) out_.ops.push_back(op);
  nfa.AddEdge(from, kOpSymbol + entry->second, kOpSymbol + entry->second, to);
}

}  // namespace deepinfer::grammar
