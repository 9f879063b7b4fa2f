#include "grammar/regex.h"

#include <algorithm>
#include <utility>

#include "grammar/regex_tree.h"
#include "grammar/symbol_classes.h"

namespace deepinfer::grammar {
namespace {

// Symbols that stand for assertions until they are resolved; those below are classes.
constexpr uint32_t kAssertionSymbol = kMaxCodePoint + 1;

// The automaton over symbol classes, which include all of CharSet::Any().
class NfaBuilder {
 public:
  NfaBuilder(const RegexTree& tree, const SymbolClasses& classes, Budget& budget)
      : tree_(tree), budget_(budget), num_classes_(classes.num_classes()) {
    for (const CharSet& set : tree.sets) classes_of_set_.push_back(classes.ClassesOf(set));
  }

  Result<Nfa> Run(RegexMatch match) {
    const uint32_t begin = nfa_.AddState();
    const uint32_t end = nfa_.AddState();
    nfa_.SetAccepting(end);
    nfa_.AddEmptyMove(0, begin);
    if (match == RegexMatch::kSearch) {
      nfa_.AddEdge(begin, 0, num_classes_ - 1, begin);
      nfa_.AddEdge(end, 0, num_classes_ - 1, end);
    }
    DI_RETURN_IF_ERROR(Add(tree_.root, begin, end));
    return std::move(nfa_);
  }

 private:
  Status Add(uint32_t index, uint32_t from, uint32_t to) {
    const RegexNode& node = tree_.nodes[index];
    DI_RETURN_IF_ERROR(budget_.Charge(1, nfa_.num_states()));
    switch (node.kind) {
      case RegexKind::kEmpty:
        nfa_.AddEmptyMove(from, to);
        return {};
      case RegexKind::kSet: {
        for (const uint32_t number : classes_of_set_[node.set]) {
          nfa_.AddEdge(from, number, number, to);
        }
        return budget_.Charge(classes_of_set_[node.set].size());
      }
      case RegexKind::kSequence: {
        uint32_t at = from;
        for (const uint32_t child : node.children) {
          const uint32_t next = nfa_.AddState();
          DI_RETURN_IF_ERROR(Add(child, at, next));
          at = next;
        }
        nfa_.AddEmptyMove(at, to);
        return {};
      }
      case RegexKind::kChoice:
        for (const uint32_t child : node.children) {
          DI_RETURN_IF_ERROR(Add(child, from, to));
        }
        return {};
      case RegexKind::kRepeat:
        return AddRepeat(node, from, to);
      case RegexKind::kAssertion: {
        const uint32_t symbol = kAssertionSymbol + static_cast<uint32_t>(node.assertion);
        nfa_.AddEdge(from, symbol, symbol, to);
        return {};
      }
    }
    return {};
  }

  Status AddRepeat(const RegexNode& node, uint32_t from, uint32_t to) {
    uint32_t at = nfa_.AddState();
    nfa_.AddEmptyMove(from, at);
    const bool bounded = node.max != kUnbounded;
    for (uint32_t i = 0; i < (bounded ? node.max : node.min); ++i) {
      if (i >= node.min) nfa_.AddEmptyMove(at, to);
      const uint32_t next = nfa_.AddState();
      DI_RETURN_IF_ERROR(Add(node.children[0], at, next));
      at = next;
    }
    nfa_.AddEmptyMove(at, to);
    if (bounded) return {};
    const uint32_t end = nfa_.AddState();
    nfa_.AddEmptyMove(end, at);
    return Add(node.children[0], at, end);
  }

  const RegexTree& tree_;
  Budget& budget_;
  const uint32_t num_classes_;
  std::vector<std::vector<uint32_t>> classes_of_set_;
  Nfa nfa_;
};

// What the next character must be for assertions at this position to hold.
enum class Need : uint32_t { kAnything, kWord, kNoWord, kTextEnd };

// The words over symbol classes and assertion symbols in which every assertion holds where it
// stands. A state is: has a character been read, was the last one a word character, what is needed
// next.
class AssertionDfa {
 public:
  // The classes tell word characters from others.
  static Dfa Build(const SymbolClasses& classes) {
    const std::vector<uint32_t> word = classes.ClassesOf(RegexClass('w'));
    Dfa dfa = Dfa::Builder();
    for (uint32_t state = 0; state < 16; ++state) {
      const bool started = state & 8;
      const bool after_word = state & 4;
      const Need need = static_cast<Need>(state & 3);
      std::vector<Edge> edges;
      for (uint32_t number = 0; number < classes.num_classes(); ++number) {
        const bool is_word = std::binary_search(word.begin(), word.end(), number);
        if (need != Need::kAnything && need != (is_word ? Need::kWord : Need::kNoWord)) continue;
        edges.push_back({number, number, Number(true, is_word, Need::kAnything)});
      }
      const auto add_assertion = [&](RegexAssertion assertion, bool possible, Need wanted) {
        if (!possible) return;
        const uint32_t symbol = kAssertionSymbol + static_cast<uint32_t>(assertion);
        const auto both = Combine(need, wanted);
        if (both.possible) {
          edges.push_back({symbol, symbol, Number(started, after_word, both.need)});
        }
      };
      add_assertion(RegexAssertion::kTextStart, !started, Need::kAnything);
      add_assertion(RegexAssertion::kTextEnd, true, Need::kTextEnd);
      add_assertion(RegexAssertion::kWordBoundary, true, after_word ? Need::kNoWord : Need::kWord);
      add_assertion(RegexAssertion::kNotWordBoundary, true,
                    after_word ? Need::kWord : Need::kNoWord);
      dfa.AppendState(need != Need::kWord, edges);
    }
    return Trim(std::move(dfa));
  }

 private:
  static uint32_t Number(bool started, bool after_word, Need need) {
    return (started ? 8u : 0u) | (after_word ? 4u : 0u) | static_cast<uint32_t>(need);
  }

  struct Combined {
    bool possible;
    Need need;
  };
  // The text's end counts as no word character.
  static Combined Combine(Need a, Need b) {
    if (a == b || b == Need::kAnything) return {true, a};
    if (a == Need::kAnything) return {true, b};
    if (a == Need::kWord || b == Need::kWord) return {false, a};
    return {true, Need::kTextEnd};
  }
};

Result<Dfa> ResolveAssertions(const Dfa& dfa, const SymbolClasses& classes, Budget& budget) {
  DI_ASSIGN_OR_RETURN(const Dfa holding, Intersect(dfa, AssertionDfa::Build(classes), budget));
  const EdgeEncoder erase = [](Nfa& nfa, uint32_t first, uint32_t last, uint32_t from,
                               uint32_t to) {
    if (first >= kAssertionSymbol) {
      nfa.AddEmptyMove(from, to);
    } else {
      nfa.AddEdge(from, first, last, to);
    }
  };
  return Encode(holding, erase, budget);
}

Result<Dfa> TreeToDfa(const RegexTree& tree, RegexMatch match, Budget& budget) {
  std::vector<CharSet> sets = tree.sets;
  sets.push_back(CharSet::Any());
  sets.push_back(RegexClass('w'));
  const SymbolClasses classes(sets);
  DI_ASSIGN_OR_RETURN(const Nfa nfa, NfaBuilder(tree, classes, budget).Run(match));
  DI_ASSIGN_OR_RETURN(Dfa dfa, Determinise(nfa, budget));
  if (tree.has_assertions) {
    DI_ASSIGN_OR_RETURN(dfa, ResolveAssertions(dfa, classes, budget));
  }
  DI_ASSIGN_OR_RETURN(dfa, Minimise(dfa, budget));
  const Dfa expanded = classes.Expand(dfa);
  DI_RETURN_IF_ERROR(budget.Charge(expanded.num_edges()));
  return expanded;
}

// Drops ^ in front and $ at the end of the top alternatives: there they always hold when the whole
// text is matched. Whether other assertions remain.
bool DropOuterAnchors(RegexTree& tree) {
  std::vector<uint32_t> tops = {tree.root};
  if (tree.nodes[tree.root].kind == RegexKind::kChoice) tops = tree.nodes[tree.root].children;
  const auto drop = [&](uint32_t index, RegexAssertion assertion) {
    RegexNode& node = tree.nodes[index];
    if (node.kind == RegexKind::kAssertion && node.assertion == assertion) node = RegexNode();
  };
  for (const uint32_t top : tops) {
    const std::vector<uint32_t> parts = tree.nodes[top].kind == RegexKind::kSequence
                                            ? tree.nodes[top].children
                                            : std::vector<uint32_t>{top};
    drop(parts.front(), RegexAssertion::kTextStart);
    drop(parts.back(), RegexAssertion::kTextEnd);
  }
  return std::any_of(tree.nodes.begin(), tree.nodes.end(),
                     [](const RegexNode& node) { return node.kind == RegexKind::kAssertion; });
}

Result<NodeId> AddTree(GrammarIr& ir, const RegexTree& tree, uint32_t index, Budget& budget) {
  const RegexNode& node = tree.nodes[index];
  DI_RETURN_IF_ERROR(budget.Charge(1));
  std::vector<NodeId> children;
  for (const uint32_t child : node.children) {
    DI_ASSIGN_OR_RETURN(const NodeId added, AddTree(ir, tree, child, budget));
    children.push_back(added);
  }
  switch (node.kind) {
    case RegexKind::kSet:
      return ir.Chars(tree.sets[node.set]);
    case RegexKind::kSequence:
      return ir.Sequence(children);
    case RegexKind::kChoice:
      return ir.Choice(children);
    case RegexKind::kRepeat:
      return ir.Repeat(children[0], node.min, node.max);
    default:
      return ir.Empty();
  }
}

}  // namespace

Result<Dfa> RegexToDfa(std::string_view pattern, RegexMatch match, const RegexOptions& options,
                       Budget& budget) {
  DI_ASSIGN_OR_RETURN(const RegexTree tree, ParseRegex(pattern, options, budget.limits()));
  return TreeToDfa(tree, match, budget);
}

Result<NodeId> AddRegex(GrammarIr& ir, std::string_view pattern, const RegexOptions& options,
                        Budget& budget) {
  DI_ASSIGN_OR_RETURN(RegexTree tree, ParseRegex(pattern, options, budget.limits()));
  if (!DropOuterAnchors(tree)) return AddTree(ir, tree, tree.root, budget);
  DI_ASSIGN_OR_RETURN(const Dfa dfa, TreeToDfa(tree, RegexMatch::kWhole, budget));
  DI_ASSIGN_OR_RETURN(Dfa bytes, EncodeUtf8(dfa, budget));
  return ir.Regular(std::move(bytes));
}

Result<GrammarIr> RegexToIr(std::string_view pattern, const RegexOptions& options, Budget& budget) {
  GrammarIr ir;
  const RuleId root = ir.AddRule("root");
  DI_ASSIGN_OR_RETURN(const NodeId body, AddRegex(ir, pattern, options, budget));
  ir.SetBody(root, body);
  ir.SetRoot(root);
  return ir;
}

}  // namespace deepinfer::grammar
