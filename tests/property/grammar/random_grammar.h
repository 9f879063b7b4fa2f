// Small random grammars over the letters a, b and c.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "grammar/ir.h"

namespace deepinfer::grammar {

class RandomGrammar {
 public:
  // Draws with rapidcheck; use inside a property.
  static GrammarIr Draw() { return RandomGrammar(true).Build(); }
  // Without unordered members, which EBNF cannot write.
  static GrammarIr DrawOrdered() { return RandomGrammar(false).Build(); }

 private:
  explicit RandomGrammar(bool unordered) : unordered_(unordered) {}

  static int Below(int n) { return *rc::gen::resize(100, rc::gen::inRange(0, n)); }

  GrammarIr Build() {
    const int num_rules = 1 + Below(4);
    for (int i = 0; i < num_rules; ++i) rules_.push_back(ir_.AddRule("r" + std::to_string(i)));
    for (const RuleId rule : rules_) {
      std::vector<NodeId> alternatives;
      const int n = 1 + Below(3);
      for (int i = 0; i < n; ++i) alternatives.push_back(DrawNode(3));
      ir_.SetBody(rule, ir_.Choice(alternatives));
    }
    ir_.SetRoot(rules_[0]);
    return std::move(ir_);
  }

  NodeId DrawNode(int depth) {
    switch (Below(depth == 0 ? 4 : 11)) {
      case 0:
        return ir_.Literal(DrawWord(1 + Below(3)));
      case 1: {
        CharSet set;
        for (uint32_t c = 'a'; c <= 'c'; ++c) {
          if (Below(2) == 0) set.Add(c, c);
        }
        return ir_.Chars(set);
      }
      case 2:
      case 3:
        return ir_.Call(rules_[static_cast<size_t>(Below(static_cast<int>(rules_.size())))]);
      case 4:
      case 5:
      case 6:
        return ir_.Sequence(DrawNodes(depth, 1 + Below(3)));
      case 7:
        return ir_.Choice(DrawNodes(depth, 2 + Below(2)));
      case 8:
        return unordered_ ? DrawUnordered(depth) : DrawNode(depth - 1);
      case 9:
        return ir_.Optional(DrawNode(depth - 1));
      default: {
        const uint32_t min = static_cast<uint32_t>(Below(4));
        const uint32_t kinds[] = {kUnbounded, min + static_cast<uint32_t>(Below(4)), min + 300};
        return ir_.Repeat(DrawNode(depth - 1), min, kinds[Below(3)]);
      }
    }
  }

  std::vector<NodeId> DrawNodes(int depth, int n) {
    std::vector<NodeId> nodes;
    for (int i = 0; i < n; ++i) nodes.push_back(DrawNode(depth - 1));
    return nodes;
  }

  // Members begin with a letter, so that none is empty.
  NodeId DrawUnordered(int depth) {
    Unordered unordered;
    const int n = 1 + Below(3);
    for (int i = 0; i < n; ++i) {
      const NodeId parts[] = {ir_.Literal(DrawWord(1)), DrawNode(depth - 1)};
      unordered.members.push_back({ir_.Sequence(parts), Below(3) == 0, Below(4) == 0});
    }
    unordered.separator = Below(3) == 0 ? ir_.Empty() : ir_.Literal(DrawWord(1));
    unordered.min = static_cast<uint32_t>(Below(3));
    unordered.max = Below(2) == 0 ? kUnbounded : unordered.min + static_cast<uint32_t>(Below(3));
    return ir_.Any(unordered);
  }

  static std::string DrawWord(int length) {
    std::string word;
    for (int i = 0; i < length; ++i) word.push_back(static_cast<char>('a' + Below(3)));
    return word;
  }

  const bool unordered_;
  GrammarIr ir_;
  std::vector<RuleId> rules_;
};

}  // namespace deepinfer::grammar
