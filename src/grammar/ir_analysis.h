// What the compiler asks about an IR before it lowers it, and the rewriting that makes recursion
// cheap.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "grammar/ir.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

// Facts about nodes and rules, as least fixpoints. Covers the nodes that exist when it is made.
class IrFacts {
 public:
  static Result<IrFacts> Of(const GrammarIr& ir, Budget& budget);

  bool nullable(NodeId node) const { return nullable_[GrammarIr::Index(node)]; }
  bool productive(NodeId node) const { return productive_[GrammarIr::Index(node)]; }
  // Whether the rule can call itself, directly or not.
  bool recursive(RuleId rule) const { return recursive_[GrammarIr::Index(rule)]; }
  // How often bodies of reachable rules name it.
  uint32_t uses(RuleId rule) const { return uses_[GrammarIr::Index(rule)]; }
  // Rules reachable from the root, each after those it calls unless they call each other.
  const std::vector<RuleId>& order() const { return order_; }

 private:
  void FindOrder(const GrammarIr& ir, std::vector<std::vector<uint32_t>> calls);

  std::vector<bool> nullable_, productive_;
  std::vector<bool> recursive_;
  std::vector<uint32_t> uses_;
  std::vector<RuleId> order_;
};

// Turns direct recursion at either end of a rule's alternatives into repetition (A = A b | a is
// a b*): then matching it keeps no stack. The language stays the same.
void UnrollEndRecursion(GrammarIr& ir);

// Rewrites counted repetitions of what may be empty, x{2,9} with a nullable x, to {0,9} times the
// non-empty part of x, so that a count never grows without a byte.
void CountNonEmptyOnly(GrammarIr& ir, const IrFacts& facts);

}  // namespace deepinfer::grammar
