// Intersection, union and complement of sets of JSON values.
#pragma once

#include <functional>
#include <optional>

#include "base/result.h"
#include "grammar/json_schema/schema_document.h"
#include "grammar/json_schema/value_set.h"

namespace deepinfer::grammar {

// Keeps references to its arguments. kResourceExhausted where a result would have too many cases.
class SetAlgebra {
 public:
  // Whether a term is certainly empty; false where that is not known.
  using IsEmpty = std::function<Result<bool>(Term)>;
  SetAlgebra(TermTable& terms, const SchemaDocument& document, IsEmpty is_empty, Budget& budget)
      : terms_(terms), document_(document), is_empty_(std::move(is_empty)), budget_(budget) {}

  // Notes of what has been evaluated are joined.
  Result<ValueSet> Intersect(const ValueSet& a, const ValueSet& b);
  Result<ValueSet> Union(ValueSet a, const ValueSet& b);
  // Without notes of what has been evaluated. kUnsupported where a part of the set has no
  // complement that could be written.
  Result<ValueSet> Complement(const ValueSet& set);
  // Whether the set is certainly empty.
  Result<bool> IsEmptySet(const ValueSet& set);

  // All strings of the cases, over code points.
  Result<Dfa> WordsOf(const std::vector<StringCase>& cases);
  Result<std::optional<StringCase>> IntersectStrings(const StringCase& a, const StringCase& b);

 private:
  Result<bool> IsEmptyArray(const ArrayCase& array);
  Result<bool> IsEmptyObject(const ObjectCase& object);
  std::optional<ArrayCase> IntersectArrays(const ArrayCase& a, const ArrayCase& b);
  ObjectCase IntersectObjects(const ObjectCase& a, const ObjectCase& b);
  Result<std::vector<StringCase>> ComplementString(const StringCase& string);
  Result<std::vector<ArrayCase>> ComplementArray(const ArrayCase& array);
  std::vector<ObjectCase> ComplementObject(const ObjectCase& object);
  Status CheckCases(size_t cases);

  Result<std::vector<StringCase>> Product(const std::vector<StringCase>& a,
                                          const std::vector<StringCase>& b);
  Result<std::vector<ArrayCase>> Product(const std::vector<ArrayCase>& a,
                                         const std::vector<ArrayCase>& b);
  Result<std::vector<ObjectCase>> Product(const std::vector<ObjectCase>& a,
                                          const std::vector<ObjectCase>& b);

  TermTable& terms_;
  const SchemaDocument& document_;
  const IsEmpty is_empty_;
  Budget& budget_;
};

}  // namespace deepinfer::grammar
