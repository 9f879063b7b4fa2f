#include "grammar/json_schema/schema_sets.h"

#include <algorithm>
#include <charconv>

#include "grammar/json_schema/words.h"

namespace deepinfer::grammar {
namespace {

using Kind = JsonNode::Kind;

// Schemas that apply to the same value inside each other.
constexpr uint32_t kMaxInPlaceDepth = 150;
// How far down a search for a contradiction goes.
constexpr uint32_t kMaxEmptyDepth = 24;

}  // namespace

SchemaSets::SchemaSets(SchemaDocument& document, const JsonSchemaOptions& options, Budget& budget)
    : document_(document),
      options_(options),
      budget_(budget),
      algebra_(
          terms_, document, [this](Term term) { return IsEmpty(term); }, budget),
      scopes_(1) {}

Term SchemaSets::SchemaAt(const JsonNode& schema, uint32_t scope) {
  if (document_.has_dynamic_references()) {
    const uint32_t resource = document_.resource_of(schema);
    std::vector<uint32_t> entered = scopes_[scope];
    if (std::find(entered.begin(), entered.end(), resource) == entered.end()) {
      entered.push_back(resource);
      const auto known = std::find(scopes_.begin(), scopes_.end(), entered);
      scope = static_cast<uint32_t>(known - scopes_.begin());
      if (known == scopes_.end()) scopes_.push_back(std::move(entered));
    }
  }
  return terms_.Schema({&schema, scope});
}

Term SchemaSets::ChildOf(const Site& site, const JsonNode& child) {
  return SchemaAt(child, site.scope);
}

Result<const ValueSet*> SchemaSets::SetOf(Term term) {
  const uint32_t index = TermTable::Index(term);
  if (index < sets_.size() && sets_[index] != nullptr) return sets_[index].get();
  DI_ASSIGN_OR_RETURN(ValueSet set, InPlace(term, Notes::kNo));
  if (sets_.size() < terms_.size()) sets_.resize(terms_.size());
  sets_[index] = std::make_unique<const ValueSet>(std::move(set));
  return sets_[index].get();
}

Result<ValueSet> SchemaSets::InPlace(Term term, Notes notes) {
  const uint32_t index = TermTable::Index(term);
  if (notes == Notes::kNo && index < sets_.size() && sets_[index] != nullptr) return *sets_[index];
  DI_RETURN_IF_ERROR(budget_.Charge(20, terms_.size()));
  const auto key = std::pair(term, notes);
  if (!in_progress_.insert(key).second) {
    met_loop_ = true;
    const TermTable::Entry& entry = terms_.entry(term);
    return MakeError(ErrorCode::kInvalidArgument, "{}: the schema refers to itself without content",
                     entry.kind == TermKind::kSchema ? document_.PathOf(*entry.schema.schema)
                                                     : std::string("#"));
  }
  Result<ValueSet> result = ValueSet();
  if (depth_ >= kMaxInPlaceDepth) {
    result = MakeError(ErrorCode::kResourceExhausted,
                       "more than {} schemas inside each other apply to the same value",
                       kMaxInPlaceDepth);
  } else {
    ++depth_;
    result = WorkOut(term, notes);
    --depth_;
  }
  in_progress_.erase(key);
  return result;
}

Result<ValueSet> SchemaSets::WorkOut(Term term, Notes notes) {
  const TermTable::Entry entry = terms_.entry(term);  // a copy: the table grows
  switch (entry.kind) {
    case TermKind::kEverything:
      return ValueSet::Everything();
    case TermKind::kNothing:
      return ValueSet();
    case TermKind::kSchema:
      return Expand(entry.schema, notes);
    case TermKind::kConstant:
      return SetOfConstant(*entry.value);
    case TermKind::kAll: {
      DI_ASSIGN_OR_RETURN(ValueSet set, InPlace(entry.parts[0], notes));
      for (size_t i = 1; i < entry.parts.size(); ++i) {
        DI_ASSIGN_OR_RETURN(const ValueSet part, InPlace(entry.parts[i], notes));
        DI_RETURN_IF_ERROR(Cut(set, part));
      }
      return set;
    }
    case TermKind::kAny: {
      ValueSet set;
      for (const Term part : entry.parts) {
        DI_ASSIGN_OR_RETURN(const ValueSet more, InPlace(part, notes));
        DI_ASSIGN_OR_RETURN(set, algebra_.Union(std::move(set), more));
      }
      return set;
    }
    case TermKind::kNot: {
      DI_ASSIGN_OR_RETURN(const ValueSet set, InPlace(entry.parts[0], Notes::kNo));
      return algebra_.Complement(set);
    }
  }
  return ValueSet();
}

Result<bool> SchemaSets::IsEmpty(Term term) {
  if (term == kEverything || term == kNothing) return term == kNothing;
  const uint32_t index = TermTable::Index(term);
  if (index < known_empty_.size() && (known_empty_[index] || known_not_empty_[index])) {
    return bool{known_empty_[index]};
  }
  if (empty_depth_ >= kMaxEmptyDepth || depth_ >= kMaxInPlaceDepth) return false;
  ++empty_depth_;
  const Result<const ValueSet*> set = SetOf(term);
  Result<bool> empty = false;
  if (set) {
    empty = algebra_.IsEmptySet(**set);
  } else if (met_loop_) {
    met_loop_ = false;  // what is being worked out is not known yet
  } else {
    empty = tl::unexpected<Error>(set.error());
  }
  --empty_depth_;
  if (!empty || !set) return empty;
  if (known_empty_.size() < terms_.size()) {
    known_empty_.resize(terms_.size());
    known_not_empty_.resize(terms_.size());
  }
  (*empty ? known_empty_ : known_not_empty_)[index] = true;
  return empty;
}

Result<ValueSet> SchemaSets::SetOfConstants(const std::vector<JsonNode>& values) {
  ValueSet set;
  std::vector<std::string> numbers, strings;
  for (const JsonNode& value : values) {
    if (value.is(Kind::kNumber)) {
      numbers.push_back(value.text);
    } else if (value.is(Kind::kString)) {
      strings.push_back(value.text);
    } else {
      DI_ASSIGN_OR_RETURN(const ValueSet one, SetOfConstant(value));
      DI_ASSIGN_OR_RETURN(set, algebra_.Union(std::move(set), one));
    }
  }
  DI_ASSIGN_OR_RETURN(set.numbers, NumberSet::Of(std::move(numbers), budget_));
  if (!strings.empty()) {
    DI_ASSIGN_OR_RETURN(Dfa words, TextsDfa(strings, budget_));
    set.strings.push_back({std::make_shared<const Dfa>(std::move(words))});
  }
  return set;
}

Result<ValueSet> SchemaSets::SetOfConstant(const JsonNode& value) {
  ValueSet set;
  switch (value.kind) {
    case Kind::kNull:
      set.null = true;
      break;
    case Kind::kFalse:
      set.no = true;
      break;
    case Kind::kTrue:
      set.yes = true;
      break;
    case Kind::kNumber:
    case Kind::kString:
      return SetOfConstants({value});
    case Kind::kArray: {
      ArrayCase array;
      for (const JsonNode& item : value.items) array.prefix.push_back(terms_.Constant(item));
      array.rest = kNothing;
      array.min = array.max = static_cast<uint32_t>(value.items.size());
      set.arrays.push_back(std::move(array));
      break;
    }
    case Kind::kObject: {
      ObjectCase object;
      NameSet names;
      for (const JsonMember& member : value.members) {
        object.required.emplace(member.key, terms_.Constant(member.value));
        names.names.insert(member.key);
      }
      object.others.push_back({names.Complement(), kNothing});
      set.objects.push_back(std::move(object));
      break;
    }
  }
  return set;
}

Result<uint32_t> SchemaSets::Count(const Site& site, std::string_view keyword, uint32_t fallback) {
  const JsonNode* value = site.Find(keyword);
  if (value == nullptr) return fallback;
  if (!value->is(Kind::kNumber) || value->text.find_first_of("-.") != std::string::npos) {
    return document_.Invalid(site.schema, keyword, "not an integer of at least 0");
  }
  constexpr uint32_t kMaxCount = 1'000'000'000;
  uint32_t count = 0;
  const char* end = value->text.data() + value->text.size();
  const auto [stop, error] = std::from_chars(value->text.data(), end, count);
  if (error == std::errc() && count <= kMaxCount) return count;
  // No text holds so much: an upper bound is none.
  if (keyword.starts_with("max")) return kUnbounded;
  return document_.Refuse(site.schema, keyword, "more than 1,000,000,000");
}

Status SchemaSets::CheckSchema(const Site& site, std::string_view keyword, const JsonNode& value) {
  if (value.is(Kind::kObject) || value.is_boolean()) return {};
  return document_.Invalid(site.schema, keyword, "not a schema (an object, true or false)");
}

Result<const std::vector<JsonNode>*> SchemaSets::SchemaList(const Site& site,
                                                            std::string_view keyword) {
  const JsonNode* value = site.Find(keyword);
  if (value == nullptr) return nullptr;
  if (!value->is(Kind::kArray)) return document_.Invalid(site.schema, keyword, "not an array");
  for (const JsonNode& item : value->items) {
    DI_RETURN_IF_ERROR(CheckSchema(site, keyword, item));
  }
  return &value->items;
}

}  // namespace deepinfer::grammar
