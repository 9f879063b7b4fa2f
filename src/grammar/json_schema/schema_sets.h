// From schemas to sets of values.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "grammar/json_schema/json_schema_options.h"
#include "grammar/json_schema/schema_document.h"
#include "grammar/json_schema/set_algebra.h"
#include "grammar/json_schema/value_set.h"

namespace deepinfer::grammar {

// Works out the terms of one document, each once. Errors name the keyword and its path:
// kUnsupported for what is not supported, kInvalidArgument for what is no schema,
// kResourceExhausted for what is too much. Keeps references to its arguments; not thread-safe.
class SchemaSets {
 public:
  SchemaSets(SchemaDocument& document, const JsonSchemaOptions& options, Budget& budget);

  TermTable& terms() { return terms_; }
  SetAlgebra& algebra() { return algebra_; }
  const SchemaDocument& document() const { return document_; }
  Term root() { return SchemaAt(document_.root(), 0); }

  // The reference stays valid.
  Result<const ValueSet*> SetOf(Term term);
  // Whether the term is certainly empty; false where that is not known.
  Result<bool> IsEmpty(Term term);

  // Whether some "format" has been asserted.
  bool has_formats() const { return has_formats_; }

 private:
  // Whether notes of what has been evaluated are needed.
  enum class Notes { kNo, kYes };
  // A schema that is being worked out.
  struct Site {
    const JsonNode& schema;
    SchemaDraft draft;
    uint32_t scope;
    Notes notes;

    const JsonNode* Find(std::string_view keyword) const {
      return HasKeyword(draft, keyword) ? schema.Find(keyword) : nullptr;
    }
  };

  Term SchemaAt(const JsonNode& schema, uint32_t scope);
  Term ChildOf(const Site& site, const JsonNode& child);
  // The set of a term whose schema applies to the same value.
  Result<ValueSet> InPlace(Term term, Notes notes);
  Result<ValueSet> WorkOut(Term term, Notes notes);
  Result<ValueSet> Expand(const SchemaTerm& term, Notes notes);
  Result<ValueSet> SetOfConstant(const JsonNode& value);
  Result<ValueSet> SetOfConstants(const std::vector<JsonNode>& values);

  // Keywords that assert something themselves.
  Result<ValueSet> Assertions(const Site& site);
  Result<ValueSet> Types(const Site& site);
  Result<NumberSet> Numbers(const Site& site, NumberSet numbers);
  Result<std::vector<StringCase>> Strings(const Site& site);
  Result<ArrayCase> Arrays(const Site& site);
  Status Items(const Site& site, ArrayCase& array);
  Status ContainedItems(const Site& site, ArrayCase& array);
  Result<ObjectCase> Objects(const Site& site);
  Status Members(const Site& site, ObjectCase& object);
  Status MemberNames(const Site& site, ObjectCase& object);
  // Of a language over code points: listed if there are few.
  Result<NameSet> NamesOf(const Dfa& words);
  Result<std::shared_ptr<const Dfa>> Pattern(const Site& site, std::string_view keyword,
                                             const std::string& pattern);

  // Keywords that apply other schemas to the same value: each cuts `set` down.
  Status References(const Site& site, ValueSet& set);
  Status Combinations(const Site& site, ValueSet& set);
  Status Conditions(const Site& site, ValueSet& set);
  Status Dependencies(const Site& site, std::string_view keyword, ValueSet& set);
  Status Unevaluated(const Site& site, ValueSet& set);
  Result<ValueSet> AnyOf(const Site& site, const std::vector<JsonNode>& branches);
  Result<ValueSet> OneOf(const Site& site, const std::vector<JsonNode>& branches);
  Status Cut(ValueSet& set, const ValueSet& by);
  Result<const JsonNode*> DynamicTarget(const Site& site, std::string_view keyword,
                                        const JsonNode& reference);

  // Keywords' values; kInvalidArgument where they are of the wrong kind. `fallback` without them.
  Result<uint32_t> Count(const Site& site, std::string_view keyword, uint32_t fallback);
  Result<const std::vector<JsonNode>*> SchemaList(const Site& site, std::string_view keyword);
  Status CheckSchema(const Site& site, std::string_view keyword, const JsonNode& value);

  SchemaDocument& document_;
  const JsonSchemaOptions& options_;
  Budget& budget_;
  TermTable terms_;
  SetAlgebra algebra_;
  std::vector<std::unique_ptr<const ValueSet>> sets_;  // by term
  std::vector<bool> known_empty_, known_not_empty_;
  std::set<std::pair<Term, Notes>> in_progress_;
  bool met_loop_ = false;  // why the last error of InPlace came
  uint32_t depth_ = 0;
  uint32_t empty_depth_ = 0;
  std::vector<std::vector<uint32_t>> scopes_;
  std::map<std::string, std::shared_ptr<const Dfa>> patterns_;
  bool has_formats_ = false;
};

}  // namespace deepinfer::grammar
