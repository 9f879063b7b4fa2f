// The automaton that a grammar compiles to: one byte automaton a rule, with calls between rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/byte_set.h"
#include "grammar/ir.h"
#include "grammar/limits.h"
#include "grammar/member_sets.h"

namespace deepinfer::grammar {

// Every running rule has one register. A counted repetition counts in it; unordered members keep
// their set in it (MemberSets). Operations test and change it; where the test fails there is no
// way on. Guards only pass where the rest can still be completed.
enum class OpKind : uint8_t {
  kEnterLoop,  // the count becomes 0
  kAgain,      // requires count < max; one more
  kLeaveLoop,  // requires count >= min
  kEnterSet,   // no member was used
  kSelect,     // requires that the member may still be used; uses it
  kMore,       // requires that some member may still be used
  kLeaveSet,   // requires that all required members were used and the count suffices
};
struct Op {
  OpKind kind;
  uint32_t object;      // index into loops or member_sets
  uint32_t member = 0;  // kSelect

  friend bool operator==(const Op&, const Op&) = default;
};
struct Loop {
  uint32_t min;
  uint32_t max;  // kUnbounded
};

struct ByteEdge {
  uint8_t first;
  uint8_t last;
  uint16_t ops;  // index into op_lists; 0 is the empty list
  uint32_t target;
};
// A move without a byte.
struct SpecialEdge {
  bool is_call;
  uint32_t index;  // the rule called, or the op list
  uint32_t target;
};

enum StateFlags : uint8_t {
  kAccepting = 1,   // the rule may end here
  kHasSpecial = 2,  // has special edges
  kPureReturn = 4,  // accepting and without any edge
  kUsesLoop = 8,    // what follows depends on the register, which counts
  kUsesSet = 16,    // what follows depends on the register, which holds a set
};

struct State {
  uint32_t bytes_begin;  // edges lie between this state's begins and the next state's
  uint32_t special_begin;
  uint32_t register_object;  // which loop or member set, by the flags
  uint8_t flags;
};

// Immutable, apart from the intern table inside member_sets, which locks itself.
struct Program {
  std::vector<State> states;  // and one more at the end, for the begins
  std::vector<ByteEdge> byte_edges;
  std::vector<SpecialEdge> special_edges;
  std::vector<std::vector<Op>> op_lists;
  std::vector<Loop> loops;
  std::vector<std::unique_ptr<MemberSets>> member_sets;
  std::vector<uint32_t> rule_start;
  std::vector<ByteSet> rule_follow;  // bytes that can come after a rule's end
  uint32_t root_rule = 0;

  size_t num_states() const { return states.size() - 1; }
  std::span<const ByteEdge> bytes(uint32_t state) const {
    return {byte_edges.data() + states[state].bytes_begin,
            byte_edges.data() + states[state + 1].bytes_begin};
  }
  std::span<const SpecialEdge> specials(uint32_t state) const {
    return {special_edges.data() + states[state].special_begin,
            special_edges.data() + states[state + 1].special_begin};
  }
  // Applies the list to the register; false where a guard fails.
  bool Apply(uint32_t op_list, uint64_t& reg) const;
  size_t bytes_used() const;
};

// Pure: the same IR gives the same program. kInvalidArgument names what is wrong with the grammar
// (an undefined rule, no string at all), kResourceExhausted the limit that it exceeds.
Result<Program> CompileProgram(GrammarIr ir, Budget& budget);

}  // namespace deepinfer::grammar
