// Lowers the rules of an IR to automata over bytes, rule calls and register operations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/ir.h"
#include "grammar/ir_analysis.h"
#include "grammar/program.h"

namespace deepinfer::grammar {

// Symbols above the bytes in a rule's automaton.
inline constexpr uint32_t kCallSymbol = 1u << 24;  // + the rule
inline constexpr uint32_t kOpSymbol = 1u << 31;    // + index into LoweredRules::ops

// Rules are numbered as in the IR; what had to become a rule of its own comes after them. Rules
// that were copied into all their callers, or are not reachable, have an empty automaton.
struct LoweredRules {
  std::vector<Dfa> rules;
  std::vector<Op> ops;
  std::vector<Loop> loops;
  std::vector<std::unique_ptr<MemberSets>> member_sets;
};

class RuleLowering {
 public:
  // Keeps references to its arguments.
  RuleLowering(const GrammarIr& ir, const IrFacts& facts, Budget& budget);

  Result<LoweredRules> Run();

 private:
  // Where a node stands: inside a counted repetition or a member, the rule's register is taken.
  struct Place {
    bool register_taken = false;
    uint32_t depth = 0;
  };

  Result<Dfa> LowerRule(NodeId body, uint32_t depth);
  Status Lower(Nfa& nfa, NodeId id, uint32_t from, uint32_t to, Place place);
  void LowerLiteral(Nfa& nfa, std::string_view bytes, uint32_t from, uint32_t to);
  Status LowerCall(Nfa& nfa, uint32_t rule, uint32_t from, uint32_t to);
  Status LowerRepeat(Nfa& nfa, NodeId id, uint32_t from, uint32_t to, Place place);
  Status LowerCopies(Nfa& nfa, const Node& node, uint32_t from, uint32_t to, Place place);
  Status LowerCounted(Nfa& nfa, const Node& node, uint32_t from, uint32_t to, Place place);
  Status LowerUnordered(Nfa& nfa, NodeId id, uint32_t from, uint32_t to, Place place);
  Result<uint32_t> AddMemberSet(const Unordered& unordered);
  // Makes the node a rule with a register of its own, and calls it.
  Status Outline(Nfa& nfa, NodeId id, uint32_t from, uint32_t to, Place place);
  void AddOp(Nfa& nfa, uint32_t from, Op op, uint32_t to);
  // About how many states one copy of the node takes; saturates.
  uint32_t CostOf(NodeId id);

  const GrammarIr& ir_;
  const IrFacts& facts_;
  Budget& budget_;
  LoweredRules out_;
  std::vector<std::optional<Dfa>> copied_;  // rules that callers copy
  std::unordered_map<uint32_t, uint32_t> outlined_;
  std::unordered_map<uint32_t, uint32_t> costs_;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> op_numbers_;
};

}  // namespace deepinfer::grammar
