// Names for sets of JSON values that are not worked out yet: what recursion in schemas runs over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "grammar/json_schema/json_node.h"

namespace deepinfer::grammar {

enum class Term : uint32_t {};
inline constexpr Term kEverything{0};
inline constexpr Term kNothing{1};

enum class TermKind : uint8_t { kEverything, kNothing, kSchema, kConstant, kAll, kAny, kNot };

// A schema in a dynamic scope: the resources entered on the way to it.
struct SchemaTerm {
  const JsonNode* schema;
  uint32_t scope;
  auto operator<=>(const SchemaTerm&) const = default;
};

// Equal terms have equal numbers; what is combined is put into one order and simplified where that
// is obvious. Not thread-safe.
class TermTable {
 public:
  TermTable();

  Term Schema(SchemaTerm schema);
  Term Constant(const JsonNode& value);
  Term All(std::vector<Term> parts);  // the intersection
  Term All(Term a, Term b) { return All(std::vector<Term>{a, b}); }
  Term Any(std::vector<Term> parts);  // the union
  Term Not(Term term);

  struct Entry {
    TermKind kind;
    SchemaTerm schema{};              // kSchema
    const JsonNode* value = nullptr;  // kConstant
    std::vector<Term> parts;          // kAll, kAny, kNot
  };
  const Entry& entry(Term term) const { return entries_[Index(term)]; }
  size_t size() const { return entries_.size(); }
  static constexpr uint32_t Index(Term term) { return static_cast<uint32_t>(term); }

 private:
  Term Append(Entry entry);
  Term Combine(TermKind kind, std::vector<Term> parts);

  std::vector<Entry> entries_;
  std::map<SchemaTerm, Term> schemas_;
  std::map<std::string, Term> constants_;
  std::map<std::pair<TermKind, std::vector<Term>>, Term> combined_;
};

}  // namespace deepinfer::grammar
