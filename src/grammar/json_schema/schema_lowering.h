// From sets of values to grammar rules.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "grammar/ir.h"
#include "grammar/json_schema/json_schema_options.h"
#include "grammar/json_schema/schema_sets.h"

namespace deepinfer::grammar {

// Adds a rule for each term that is needed. Keeps references to its arguments; not thread-safe.
class SchemaLowering {
 public:
  SchemaLowering(SchemaSets& sets, GrammarIr& ir, const JsonSchemaOptions& options, Budget& budget);

  // A node for the JSON texts of the term's values. Rules that it needs get their bodies from
  // Finish, once for all nodes.
  NodeId Value(Term term);
  Status Finish();

  // Writes the members of one object.
  struct MemberWriter {
    std::function<Result<NodeId>(const std::string& name, Term value)> named;
    // Members whose names (bytes of CanonicalString) are in the language.
    std::function<Result<NodeId>(Dfa names, Term value)> unlisted;
    bool repeats_unlisted = true;  // else at most one member of each class of names
    NodeId separator{};
  };
  // The members of the term's objects, one entry a case; other values of the term are left out.
  Result<std::vector<Unordered>> Members(Term term, const MemberWriter& writer);

  // From now on strings write the character, above the controls, as \u escape only.
  void EscapeAlways(uint32_t code_point) { escaped_ = code_point; }

  // The strings of the term as they are, without quotes and escapes, confined by `confine` (over
  // code points). Where their length counts they do not hold the character that is always escaped.
  using Confine = std::function<Result<Dfa>(const Dfa& words)>;
  Result<NodeId> RawStrings(Term term, const Confine& confine);
  // The JSON texts of the term's values that are no strings.
  Result<NodeId> ValueWithoutStrings(Term term);

 private:
  // Names that are not listed one by one, and what their values must be.
  struct Atom {
    Dfa names;
    Term term;
    bool required = false;
  };

  Result<NodeId> String(const std::vector<StringCase>& cases);
  Result<Dfa> QuotedTexts(const std::shared_ptr<const Dfa>& words);
  std::string KeyText(std::string_view name) const;
  Result<NodeId> SetNode(const ValueSet& set);

  Result<NodeId> Number(const NumberSet& numbers);
  NodeId AnyString(uint32_t min, uint32_t max);
  std::string EscapedRange() const;

  Result<NodeId> Array(const ArrayCase& array);
  NodeId PlainArray(const ArrayCase& array);
  // Where items must be distinct and are few, or where their number is.
  Result<NodeId> UniqueArray(const ArrayCase& array);
  Result<NodeId> ContainingArray(const ArrayCase& array);
  // The JSON texts of the term's values if they are few scalars.
  Result<std::optional<std::vector<std::string>>> FiniteValues(Term term);
  // `content` is never empty; it may be missing altogether.
  NodeId Bracketed(std::string_view open, NodeId content, bool may_be_empty,
                   std::string_view close);

  // `some` of an object settled: a listed name has it, or unlisted names of these sets are there.
  struct OpenCase {
    ObjectCase object;
    std::vector<NameSet> present;
  };
  Result<std::vector<Unordered>> ObjectMembers(const ObjectCase& object,
                                               const MemberWriter& writer);
  Result<std::vector<OpenCase>> SettleSome(const ObjectCase& object,
                                           const std::set<std::string>& names);
  Result<std::vector<Atom>> Atoms(const ObjectCase& object, const std::vector<NameSet>& present,
                                  const std::set<std::string>& names);
  Status SplitAtoms(const NameSet& set, Term term, std::vector<Atom>& atoms);
  Status RequireAtoms(const OpenCase& open, std::vector<Atom>& atoms);
  Status AddListed(const ObjectCase& object, const std::set<std::string>& names,
                   const MemberWriter& writer, Unordered& unordered);
  Status CheckMinimum(const ObjectCase& object, const Unordered& unordered);
  MemberWriter JsonWriter();

  NodeId Shared(const std::string& name, const std::function<NodeId()>& make);

  SchemaSets& sets_;
  GrammarIr& ir_;
  const JsonSchemaOptions& options_;
  Budget& budget_;
  std::optional<uint32_t> escaped_;
  NodeId space_;  // after openers and commas, before closers
  NodeId after_colon_;
  NodeId comma_;
  std::map<Term, RuleId> rules_;
  std::vector<std::pair<Term, RuleId>> pending_;
  std::map<std::string, NodeId> shared_;
  std::map<std::shared_ptr<const Dfa>, NodeId> string_nodes_;
};

}  // namespace deepinfer::grammar
