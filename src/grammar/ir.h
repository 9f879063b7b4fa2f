// The one intermediate form that every front end lowers to: rules over byte strings.
//
// A front end builds a GrammarIr, CompileGrammar (grammar/compiled_grammar.h) turns it into an
// automaton. What is regular and needs more than union, sequence and repetition (intersection,
// complement, length of a pattern) is computed on automata first (grammar/automaton.h) and enters
// as a Regular node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/char_set.h"

namespace deepinfer::grammar {

// Index of a node of one GrammarIr. Nodes are immutable and may be shared by several parents; only
// rules make cycles.
enum class NodeId : uint32_t {};
enum class RuleId : uint32_t {};

enum class NodeKind : uint8_t {
  kEmpty,      // the empty string
  kNothing,    // no string at all
  kLiteral,    // these bytes
  kChars,      // one character of the set, in UTF-8
  kRegular,    // a string of bytes of a regular language
  kSequence,   // the children one after another
  kChoice,     // one of the children; order has no meaning
  kRepeat,     // min to max times the child
  kRule,       // what another rule stands for
  kUnordered,  // members in any order: see Unordered
};

// Members in any order (or in theirs, some left out), each at most once, with a separator between
// any two: the members of a JSON object, say. The compiler keeps the set of used members beside the
// automaton, so n members cost n states, not 2^n. At most 65,535 members.
struct Unordered {
  struct Member {
    NodeId node;
    bool required = false;
    bool repeatable = false;  // may stand any number of times (additional properties)
  };
  std::vector<Member> members;
  NodeId separator;
  // Members in all, repeatable ones counted each time. A required member counts too.
  uint32_t min = 0;
  uint32_t max = kUnbounded;
  bool ordered = false;  // members come in the order of `members`
};

struct Node {
  NodeKind kind = NodeKind::kNothing;
  uint32_t min = 0;              // kRepeat
  uint32_t max = 0;              // kRepeat; kUnbounded
  uint32_t index = 0;            // kRule: the rule; others: where GrammarIr keeps the payload
  std::vector<NodeId> children;  // kSequence, kChoice, kRepeat
};

// Grows by appending; not thread-safe. Every id given to a method must come from this object.
class GrammarIr {
 public:
  // Simplifies on the way: sequences and choices flatten, single children stand for themselves,
  // kNothing absorbs.
  NodeId Empty();
  NodeId Nothing();
  NodeId Literal(std::string_view bytes);
  NodeId Chars(CharSet set);
  // `bytes` is a language over byte symbols 0 to 255.
  NodeId Regular(Dfa bytes);
  NodeId Sequence(std::span<const NodeId> parts);
  NodeId Choice(std::span<const NodeId> parts);
  NodeId Repeat(NodeId child, uint32_t min, uint32_t max);  // min <= max
  NodeId Optional(NodeId child) { return Repeat(child, 0, 1); }
  NodeId Any(Unordered unordered);
  // A node that calls the rule. Calling shares the rule's automaton and its cached masks between
  // all uses; a rule that is regular and small is copied into its callers instead.
  NodeId Call(RuleId rule);

  // Rules may be called before their body is set. A body left unset is an error of the compiler,
  // which names the rule.
  RuleId AddRule(std::string name);
  void SetBody(RuleId rule, NodeId body);
  // AddRule and SetBody at once.
  RuleId AddRule(std::string name, NodeId body);
  // The rule is called even where a copy of it would be small: it has many callers.
  void KeepShared(RuleId rule) { rules_[Index(rule)].shared = true; }
  void SetRoot(RuleId rule) { root_ = rule; }

  // For rewriting passes: the repetition `repeat` becomes min to max times `child`.
  void SetRepeat(NodeId repeat, NodeId child, uint32_t min, uint32_t max);

  RuleId root() const { return root_; }
  size_t num_rules() const { return rules_.size(); }
  size_t num_nodes() const { return nodes_.size(); }
  const std::string& rule_name(RuleId rule) const { return rules_[Index(rule)].name; }
  bool is_shared(RuleId rule) const { return rules_[Index(rule)].shared; }
  bool has_body(RuleId rule) const { return rules_[Index(rule)].has_body; }
  NodeId body(RuleId rule) const { return rules_[Index(rule)].body; }

  const Node& node(NodeId id) const { return nodes_[Index(id)]; }
  std::string_view literal(const Node& node) const { return literals_[node.index]; }
  const CharSet& chars(const Node& node) const { return char_sets_[node.index]; }
  const Dfa& regular(const Node& node) const { return dfas_[node.index]; }
  const Unordered& unordered(const Node& node) const { return unordered_[node.index]; }
  RuleId rule(const Node& node) const { return static_cast<RuleId>(node.index); }

  static constexpr uint32_t Index(NodeId id) { return static_cast<uint32_t>(id); }
  static constexpr uint32_t Index(RuleId id) { return static_cast<uint32_t>(id); }

 private:
  struct Rule {
    std::string name;
    NodeId body{};
    bool has_body = false;
    bool shared = false;
  };
  NodeId Append(Node node);

  std::vector<Node> nodes_;
  std::vector<Rule> rules_;
  std::vector<std::string> literals_;
  std::vector<CharSet> char_sets_;
  std::vector<Dfa> dfas_;
  std::vector<Unordered> unordered_;
  RuleId root_{};
};

}  // namespace deepinfer::grammar
