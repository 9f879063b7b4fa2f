#include "grammar/json_schema/term.h"

#include <algorithm>
#include <array>

namespace deepinfer::grammar {
namespace {

// Whether the schema says nothing about the value: true, {}, or notes alone.
bool AllowsEverything(const JsonNode& schema) {
  if (schema.is(JsonNode::Kind::kTrue)) return true;
  if (!schema.is(JsonNode::Kind::kObject)) return false;
  constexpr std::array<std::string_view, 9> kNotes = {"title",    "description", "default",
                                                      "examples", "example",     "$comment",
                                                      "readOnly", "deprecated",  "writeOnly"};
  return std::all_of(schema.members.begin(), schema.members.end(), [&](const JsonMember& member) {
    return std::find(kNotes.begin(), kNotes.end(), member.key) != kNotes.end();
  });
}

}  // namespace

TermTable::TermTable() {
  entries_.push_back({TermKind::kEverything, {}, nullptr, {}});
  entries_.push_back({TermKind::kNothing, {}, nullptr, {}});
}

Term TermTable::Append(Entry entry) {
  entries_.push_back(std::move(entry));
  return static_cast<Term>(entries_.size() - 1);
}

Term TermTable::Schema(SchemaTerm schema) {
  if (AllowsEverything(*schema.schema)) return kEverything;
  if (schema.schema->is(JsonNode::Kind::kFalse)) return kNothing;
  const auto known = schemas_.find(schema);
  if (known != schemas_.end()) return known->second;
  const Term term = Append({TermKind::kSchema, schema, nullptr, {}});
  schemas_.emplace(schema, term);
  return term;
}

Term TermTable::Constant(const JsonNode& value) {
  std::string text = CanonicalJson(value);
  const auto known = constants_.find(text);
  if (known != constants_.end()) return known->second;
  const Term term = Append({TermKind::kConstant, {}, &value, {}});
  constants_.emplace(std::move(text), term);
  return term;
}

Term TermTable::All(std::vector<Term> parts) { return Combine(TermKind::kAll, std::move(parts)); }

Term TermTable::Any(std::vector<Term> parts) { return Combine(TermKind::kAny, std::move(parts)); }

Term TermTable::Combine(TermKind kind, std::vector<Term> parts) {
  const Term neutral = kind == TermKind::kAll ? kEverything : kNothing;
  const Term absorbing = kind == TermKind::kAll ? kNothing : kEverything;
  std::vector<Term> flat;
  for (const Term part : parts) {
    if (part == absorbing) return absorbing;
    if (part == neutral) continue;
    if (entry(part).kind == kind) {
      flat.insert(flat.end(), entry(part).parts.begin(), entry(part).parts.end());
    } else {
      flat.push_back(part);
    }
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  for (const Term part : flat) {
    const Entry& known = entry(part);
    if (known.kind == TermKind::kNot &&
        std::binary_search(flat.begin(), flat.end(), known.parts[0])) {
      return absorbing;
    }
  }
  if (flat.empty()) return neutral;
  if (flat.size() == 1) return flat[0];
  const auto known = combined_.find({kind, flat});
  if (known != combined_.end()) return known->second;
  const Term term = Append({kind, {}, nullptr, flat});
  combined_.emplace(std::pair(kind, std::move(flat)), term);
  return term;
}

Term TermTable::Not(Term term) {
  if (term == kEverything) return kNothing;
  if (term == kNothing) return kEverything;
  if (entry(term).kind == TermKind::kNot) return entry(term).parts[0];
  const auto key = std::pair(TermKind::kNot, std::vector<Term>{term});
  const auto known = combined_.find(key);
  if (known != combined_.end()) return known->second;
  const Term result = Append({TermKind::kNot, {}, nullptr, {term}});
  combined_.emplace(key, result);
  return result;
}

}  // namespace deepinfer::grammar
