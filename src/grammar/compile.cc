// From lowered rules to the program: register operations move onto the byte edges behind them
// where that leaves every byte one way, so that most states need no closure at run time.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "grammar/ir_analysis.h"
#include "grammar/lower.h"
#include "grammar/program.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kMaxOpsOnEdge = 4;
constexpr uint32_t kUnnumbered = ~uint32_t{0};

class Assembler {
 public:
  Assembler(LoweredRules& lowered, uint32_t root) : lowered_(lowered), root_(root) {
    program_.op_lists.emplace_back();
    list_numbers_[{}] = 0;
    rule_numbers_.assign(lowered.rules.size(), kUnnumbered);
  }

  Result<Program> Run(Budget& budget) {
    program_.root_rule = NumberOf(root_);
    for (size_t i = 0; i < rules_.size(); ++i) {
      AssembleRule(lowered_.rules[rules_[i]]);
      DI_RETURN_IF_ERROR(
          budget.Charge(program_.byte_edges.size() - edges_charged_, program_.states.size()));
      edges_charged_ = program_.byte_edges.size();
    }
    program_.states.push_back({static_cast<uint32_t>(program_.byte_edges.size()),
                               static_cast<uint32_t>(program_.special_edges.size()), 0, 0});
    program_.loops = std::move(lowered_.loops);
    program_.member_sets = std::move(lowered_.member_sets);
    return std::move(program_);
  }

 private:
  uint32_t NumberOf(uint32_t lowered_rule) {
    uint32_t& number = rule_numbers_[lowered_rule];
    if (number == kUnnumbered) {
      number = static_cast<uint32_t>(rules_.size());
      rules_.push_back(lowered_rule);
    }
    return number;
  }

  // States of one rule are numbered as they are reached; what only a moved operation led to is
  // left out.
  uint32_t StateOf(uint32_t state) {
    uint32_t& number = state_numbers_[state];
    if (number == kUnnumbered) {
      number = first_state_ + static_cast<uint32_t>(reached_.size());
      reached_.push_back(state);
    }
    return number;
  }

  void AssembleRule(const Dfa& dfa) {
    first_state_ = static_cast<uint32_t>(program_.states.size());
    state_numbers_.assign(dfa.num_states(), kUnnumbered);
    reached_.clear();
    program_.rule_start.push_back(StateOf(0));
    for (size_t i = 0; i < reached_.size(); ++i) AssembleState(dfa, reached_[i]);
  }

  void AssembleState(const Dfa& dfa, uint32_t state) {
    State out{static_cast<uint32_t>(program_.byte_edges.size()),
              static_cast<uint32_t>(program_.special_edges.size()), 0, 0};
    pending_.clear();
    taken_ = ByteSet();
    AddOwnBytes(dfa, state);
    for (const Edge& edge : dfa.edges(state)) {
      if (edge.first < kCallSymbol) continue;
      for (uint64_t symbol = edge.first; symbol <= edge.last; ++symbol) {
        AddSpecial(dfa, static_cast<uint32_t>(symbol), edge.target);
      }
    }
    std::sort(pending_.begin(), pending_.end(),
              [](const ByteEdge& a, const ByteEdge& b) { return a.first < b.first; });
    program_.byte_edges.insert(program_.byte_edges.end(), pending_.begin(), pending_.end());
    if (dfa.accepting(state)) out.flags |= kAccepting;
    if (program_.special_edges.size() > out.special_begin) out.flags |= kHasSpecial;
    if (dfa.accepting(state) && dfa.edges(state).empty()) out.flags |= kPureReturn;
    program_.states.push_back(out);
  }

  void AddOwnBytes(const Dfa& dfa, uint32_t state) {
    for (const Edge& edge : dfa.edges(state)) {
      if (edge.first > 0xff) break;
      pending_.push_back({static_cast<uint8_t>(edge.first), static_cast<uint8_t>(edge.last), 0,
                          StateOf(edge.target)});
      taken_.AddRange(edge.first, edge.last);
    }
  }

  void AddSpecial(const Dfa& dfa, uint32_t symbol, uint32_t target) {
    if (symbol < kOpSymbol) {
      program_.special_edges.push_back({true, NumberOf(symbol - kCallSymbol), StateOf(target)});
      return;
    }
    const std::vector<Op> ops = {lowered_.ops[symbol - kOpSymbol]};
    moved_.clear();
    ByteSet taken = taken_;
    if (Move(dfa, target, ops, taken)) {
      taken_ = taken;
      for (const auto& [edge, list] : moved_) {
        pending_.push_back({static_cast<uint8_t>(edge.first), static_cast<uint8_t>(edge.last),
                            static_cast<uint16_t>(ListNumber(list)), StateOf(edge.target)});
      }
      return;
    }
    program_.special_edges.push_back({false, ListNumber(ops), StateOf(target)});
  }

  // Collects the byte edges behind a state with the operations before them; false where the state
  // is more than byte edges and operations, or a byte is taken.
  bool Move(const Dfa& dfa, uint32_t state, const std::vector<Op>& ops, ByteSet& taken) {
    if (dfa.accepting(state) || ops.size() > kMaxOpsOnEdge) return false;
    if (program_.op_lists.size() > 0xfff0) return false;
    for (const Edge& edge : dfa.edges(state)) {
      if (edge.first <= 0xff) {
        for (uint32_t byte = edge.first; byte <= edge.last; ++byte) {
          if (taken.Contains(byte)) return false;
          taken.Add(byte);
        }
        moved_.push_back({edge, ops});
      } else if (edge.first < kOpSymbol) {
        return false;
      } else {
        for (uint64_t symbol = edge.first; symbol <= edge.last; ++symbol) {
          std::vector<Op> longer = ops;
          longer.push_back(lowered_.ops[symbol - kOpSymbol]);
          if (!Move(dfa, edge.target, longer, taken)) return false;
        }
      }
    }
    return true;
  }

  uint32_t ListNumber(const std::vector<Op>& ops) {
    std::vector<uint64_t> key;
    for (const Op& op : ops) {
      key.push_back(uint64_t{op.object} << 24 | uint64_t{op.member} << 4 |
                    static_cast<uint8_t>(op.kind));
    }
    const auto [entry, is_new] =
        list_numbers_.emplace(std::move(key), static_cast<uint32_t>(program_.op_lists.size()));
    if (is_new) program_.op_lists.push_back(ops);
    return entry->second;
  }

  LoweredRules& lowered_;
  const uint32_t root_;
  Program program_;
  size_t edges_charged_ = 0;
  std::vector<uint32_t> rule_numbers_;
  std::vector<uint32_t> rules_;  // the lowered rule of each rule of the program
  std::map<std::vector<uint64_t>, uint32_t> list_numbers_;
  // Of the rule being assembled.
  uint32_t first_state_ = 0;
  std::vector<uint32_t> state_numbers_;
  std::vector<uint32_t> reached_;
  // Of the state being assembled.
  std::vector<ByteEdge> pending_;
  std::vector<std::pair<Edge, std::vector<Op>>> moved_;
  ByteSet taken_;
};

// Sets kUsesLoop and kUsesSet: backwards from the operations that read the register.
void MarkRegisterUse(Program& program) {
  const size_t n = program.num_states();
  std::vector<std::vector<uint32_t>> sources(n);
  std::vector<uint32_t> pending;
  const auto visit = [&](uint32_t state, uint32_t list, uint32_t target) {
    const std::vector<Op>& ops = program.op_lists[list];
    if (ops.empty()) {
      sources[target].push_back(state);
      return;
    }
    if (ops[0].kind == OpKind::kEnterLoop || ops[0].kind == OpKind::kEnterSet) return;
    State& out = program.states[state];
    const bool loop = ops[0].kind == OpKind::kAgain || ops[0].kind == OpKind::kLeaveLoop;
    if ((out.flags & (kUsesLoop | kUsesSet)) == 0) pending.push_back(state);
    out.flags |= loop ? kUsesLoop : kUsesSet;
    out.register_object = ops[0].object;
  };
  for (uint32_t state = 0; state < n; ++state) {
    for (const ByteEdge& edge : program.bytes(state)) visit(state, edge.ops, edge.target);
    for (const SpecialEdge& edge : program.specials(state)) {
      visit(state, edge.is_call ? 0 : edge.index, edge.target);
    }
  }
  while (!pending.empty()) {
    const State& done = program.states[pending.back()];
    const std::vector<uint32_t> before = std::move(sources[pending.back()]);
    pending.pop_back();
    for (const uint32_t source : before) {
      State& out = program.states[source];
      if (out.flags & (kUsesLoop | kUsesSet)) continue;
      out.flags |= done.flags & (kUsesLoop | kUsesSet);
      out.register_object = done.register_object;
      pending.push_back(source);
    }
  }
}

// rule_follow, as least fixpoints of first bytes and of what follows calls. Sets may be too large,
// never too small.
class FollowSets {
 public:
  explicit FollowSets(Program& program)
      : program_(program),
        first_(program.num_states()),
        ends_(program.num_states(), false),
        dependants_(program.num_states()),
        rule_of_(program.num_states(), 0) {}

  void Run() {
    NumberRules();
    CollectDependants();
    // Later states first: most of what a state leads to has a higher number.
    queued_.assign(program_.num_states(), true);
    for (uint32_t state = 0; state < program_.num_states(); ++state) queue_.push_back(state);
    while (!queue_.empty()) {
      const uint32_t state = queue_.back();
      queue_.pop_back();
      queued_[state] = false;
      Update(state);
    }
    program_.rule_follow.assign(program_.rule_start.size(), ByteSet());
    PropagateFollow();
  }

 private:
  void NumberRules() {
    for (uint32_t rule = 0; rule < program_.rule_start.size(); ++rule) {
      const uint32_t end = rule + 1 < program_.rule_start.size()
                               ? program_.rule_start[rule + 1]
                               : static_cast<uint32_t>(program_.num_states());
      for (uint32_t state = program_.rule_start[rule]; state < end; ++state) {
        rule_of_[state] = rule;
      }
    }
  }

  void CollectDependants() {
    for (uint32_t state = 0; state < program_.num_states(); ++state) {
      for (const SpecialEdge& edge : program_.specials(state)) {
        dependants_[edge.target].push_back(state);
        if (edge.is_call) dependants_[program_.rule_start[edge.index]].push_back(state);
      }
    }
  }

  void Update(uint32_t state) {
    ByteSet first = first_[state];
    bool ends = (program_.states[state].flags & kAccepting) != 0;
    for (const ByteEdge& edge : program_.bytes(state)) first.AddRange(edge.first, edge.last);
    for (const SpecialEdge& edge : program_.specials(state)) {
      const uint32_t start = edge.is_call ? program_.rule_start[edge.index] : edge.target;
      first.Merge(first_[start]);
      if (edge.is_call && !ends_[start]) continue;
      first.Merge(first_[edge.target]);
      ends = ends || ends_[edge.target];
    }
    const bool grew = first_[state].Merge(first) || (ends && !ends_[state]);
    ends_[state] = ends;
    if (!grew) return;
    for (const uint32_t dependant : dependants_[state]) {
      if (queued_[dependant]) continue;
      queued_[dependant] = true;
      queue_.push_front(dependant);
    }
  }

  // After a call comes what its target begins with and, where the target may end its rule, what
  // comes after that.
  void PropagateFollow() {
    struct Tail {
      uint32_t caller;
      uint32_t callee;
    };
    std::vector<std::vector<uint32_t>> tails(program_.rule_start.size());
    std::vector<uint32_t> pending;
    for (uint32_t state = 0; state < program_.num_states(); ++state) {
      for (const SpecialEdge& edge : program_.specials(state)) {
        if (!edge.is_call) continue;
        if (program_.rule_follow[edge.index].Merge(first_[edge.target])) {
          pending.push_back(edge.index);
        }
        if (ends_[edge.target]) tails[rule_of_[state]].push_back(edge.index);
      }
    }
    while (!pending.empty()) {
      const uint32_t caller = pending.back();
      pending.pop_back();
      for (const uint32_t callee : tails[caller]) {
        if (program_.rule_follow[callee].Merge(program_.rule_follow[caller])) {
          pending.push_back(callee);
        }
      }
    }
  }

  Program& program_;
  std::vector<ByteSet> first_;
  std::vector<bool> ends_;
  std::vector<std::vector<uint32_t>> dependants_;
  std::vector<uint32_t> rule_of_;
  std::vector<bool> queued_;
  std::deque<uint32_t> queue_;  // of states to update
};

}  // namespace

Result<Program> CompileProgram(GrammarIr ir, Budget& budget) {
  if (ir.num_rules() == 0) return MakeError(ErrorCode::kInvalidArgument, "the grammar has no rule");
  UnrollEndRecursion(ir);
  DI_ASSIGN_OR_RETURN(IrFacts facts, IrFacts::Of(ir, budget));
  const size_t num_nodes = ir.num_nodes();
  CountNonEmptyOnly(ir, facts);
  if (ir.num_nodes() != num_nodes) {
    DI_ASSIGN_OR_RETURN(facts, IrFacts::Of(ir, budget));
  }
  if (!facts.productive(ir.body(ir.root()))) {
    return MakeError(ErrorCode::kInvalidArgument, "the grammar matches no text at all (rule {})",
                     ir.rule_name(ir.root()));
  }
  DI_ASSIGN_OR_RETURN(LoweredRules lowered, RuleLowering(ir, facts, budget).Run());
  DI_ASSIGN_OR_RETURN(Program program, Assembler(lowered, GrammarIr::Index(ir.root())).Run(budget));
  MarkRegisterUse(program);
  FollowSets(program).Run();
  return program;
}

bool Program::Apply(uint32_t op_list, uint64_t& reg) const {
  for (const Op& op : op_lists[op_list]) {
    switch (op.kind) {
      case OpKind::kEnterLoop:
      case OpKind::kEnterSet:
        reg = 0;
        break;
      case OpKind::kAgain: {
        const Loop& loop = loops[op.object];
        if (loop.max == kUnbounded) {
          reg = std::min<uint64_t>(reg + 1, loop.min);
        } else {
          if (reg >= loop.max) return false;
          ++reg;
        }
        break;
      }
      case OpKind::kLeaveLoop:
        if (reg < loops[op.object].min) return false;
        reg = 0;
        break;
      case OpKind::kSelect:
        if (!member_sets[op.object]->Select(op.member, reg)) return false;
        break;
      case OpKind::kMore:
        if (!member_sets[op.object]->MaySelectMore(reg)) return false;
        break;
      case OpKind::kLeaveSet:
        if (!member_sets[op.object]->MayLeave(reg)) return false;
        reg = 0;
        break;
    }
  }
  return true;
}

size_t Program::bytes_used() const {
  size_t bytes = sizeof(*this) + states.capacity() * sizeof(State) +
                 byte_edges.capacity() * sizeof(ByteEdge) +
                 special_edges.capacity() * sizeof(SpecialEdge) +
                 rule_start.capacity() * (sizeof(uint32_t) + sizeof(ByteSet));
  for (const auto& list : op_lists) bytes += sizeof(list) + list.size() * sizeof(Op);
  for (const auto& set : member_sets) bytes += set->bytes_used();
  return bytes + loops.size() * sizeof(Loop);
}

}  // namespace deepinfer::grammar
