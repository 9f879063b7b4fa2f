// Keywords that assert something about a value themselves.
#include <algorithm>
#include <array>

#include "grammar/json_schema/formats.h"
#include "grammar/json_schema/schema_sets.h"
#include "grammar/json_schema/words.h"
#include "grammar/regex.h"

namespace deepinfer::grammar {
namespace {

using Kind = JsonNode::Kind;

// Names that a property may have are listed one by one up to this many.
constexpr size_t kMaxListedNames = 200;

// Adds the type's values; false if there is no such type.
bool AddType(std::string_view type, ValueSet& set) {
  const ValueSet all = ValueSet::Everything();
  if (type == "null") {
    set.null = true;
  } else if (type == "boolean") {
    set.no = set.yes = true;
  } else if (type == "number") {
    set.numbers = all.numbers;
  } else if (type == "integer") {
    if (set.numbers.empty()) set.numbers = NumberSet::Integers();
  } else if (type == "string") {
    set.strings = all.strings;
  } else if (type == "array") {
    set.arrays = all.arrays;
  } else if (type == "object") {
    set.objects = all.objects;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<ValueSet> SchemaSets::Types(const Site& site) {
  const JsonNode* type = site.Find("type");
  if (type == nullptr) return ValueSet::Everything();
  ValueSet set;
  const auto wrong = [&] {
    return document_.Invalid(site.schema, "type",
                             "not one of null, boolean, integer, number, string, array, object, "
                             "or an array of these");
  };
  if (type->is(Kind::kString)) {
    if (!AddType(type->text, set)) return wrong();
  } else if (type->is(Kind::kArray)) {
    for (const JsonNode& item : type->items) {
      if (!item.is(Kind::kString) || !AddType(item.text, set)) return wrong();
    }
  } else {
    return wrong();
  }
  const JsonNode* nullable = site.Find("nullable");
  if (nullable != nullptr && nullable->is(Kind::kTrue)) set.null = true;
  return set;
}

Result<ValueSet> SchemaSets::Assertions(const Site& site) {
  DI_ASSIGN_OR_RETURN(ValueSet set, Types(site));
  if (!set.numbers.empty()) {
    DI_ASSIGN_OR_RETURN(set.numbers, Numbers(site, set.numbers));
  }
  if (!set.strings.empty()) {
    DI_ASSIGN_OR_RETURN(set.strings, Strings(site));
  }
  if (!set.arrays.empty()) {
    DI_ASSIGN_OR_RETURN(set.arrays[0], Arrays(site));
  }
  if (!set.objects.empty()) {
    DI_ASSIGN_OR_RETURN(set.objects[0], Objects(site));
  }
  return set;
}

Result<NumberSet> SchemaSets::Numbers(const Site& site, NumberSet numbers) {
  struct Limit {
    std::string_view keyword;
    std::string_view exclusive_flag;  // of draft 4
    NumberSet::Bound bound;
    NumberSet::Bound exclusive;
  };
  using enum NumberSet::Bound;
  constexpr std::array<Limit, 4> kLimits = {{{"minimum", "exclusiveMinimum", kAtLeast, kAbove},
                                             {"maximum", "exclusiveMaximum", kAtMost, kBelow},
                                             {"exclusiveMinimum", "", kAbove, kAbove},
                                             {"exclusiveMaximum", "", kBelow, kBelow}}};
  for (const auto& [keyword, exclusive_flag, bound, exclusive] : kLimits) {
    const JsonNode* value = site.Find(keyword);
    if (value == nullptr) continue;
    if (exclusive_flag.empty() && value->is_boolean() && site.draft != SchemaDraft::k2020) continue;
    if (!value->is(Kind::kNumber)) return document_.Invalid(site.schema, keyword, "not a number");
    const JsonNode* flag = exclusive_flag.empty() ? nullptr : site.Find(exclusive_flag);
    const bool is_exclusive = flag != nullptr && flag->is(Kind::kTrue);
    DI_ASSIGN_OR_RETURN(numbers,
                        numbers.Within(is_exclusive ? exclusive : bound, value->text, budget_));
  }
  const JsonNode* divisor = site.Find("multipleOf");
  if (divisor == nullptr) return numbers;
  if (!divisor->is(Kind::kNumber) || divisor->text == "0" || divisor->text.starts_with('-')) {
    return document_.Invalid(site.schema, "multipleOf", "not a number above 0");
  }
  const Result<NumberSet> multiples = numbers.MultiplesOf(divisor->text, budget_);
  if (multiples || multiples.error().code != ErrorCode::kResourceExhausted) return multiples;
  return document_.Refuse(site.schema, "multipleOf", multiples.error().message);
}

Result<std::shared_ptr<const Dfa>> SchemaSets::Pattern(const Site& site, std::string_view keyword,
                                                       const std::string& pattern) {
  std::shared_ptr<const Dfa>& known = patterns_[pattern];
  if (known == nullptr) {
    Result<Dfa> dfa = RegexToDfa(pattern, RegexMatch::kSearch, {}, budget_);
    if (!dfa) {
      return Forward(dfa.error(), fmt::format("{} is not supported at {}", keyword,
                                              document_.PathOf(site.schema, keyword)));
    }
    known = std::make_shared<const Dfa>(std::move(*dfa));
  }
  return known;
}

Result<std::vector<StringCase>> SchemaSets::Strings(const Site& site) {
  std::vector<StringCase> none;
  StringCase string;
  DI_ASSIGN_OR_RETURN(string.min, Count(site, "minLength", 0));
  DI_ASSIGN_OR_RETURN(string.max, Count(site, "maxLength", kUnbounded));
  if (string.min > string.max) return none;
  if (const JsonNode* pattern = site.Find("pattern")) {
    if (!pattern->is(Kind::kString)) return document_.Invalid(site.schema, "pattern", "no string");
    StringCase matching;
    DI_ASSIGN_OR_RETURN(matching.words, Pattern(site, "pattern", pattern->text));
    DI_ASSIGN_OR_RETURN(const auto both, algebra_.IntersectStrings(string, matching));
    if (!both) return none;
    string = *both;
  }
  const JsonNode* format = site.Find("format");
  if (format == nullptr || options_.formats == JsonSchemaOptions::Formats::kAnnotate) {
    return std::vector<StringCase>{string};
  }
  if (!format->is(Kind::kString)) return document_.Invalid(site.schema, "format", "not a string");
  if (IsUnsupportedFormat(format->text)) {
    return document_.Refuse(site.schema, "format",
                            fmt::format("\"{}\" cannot be asserted", format->text));
  }
  StringCase matching;
  matching.words = FormatWords(format->text);
  if (matching.words == nullptr) return std::vector<StringCase>{string};
  has_formats_ = true;
  DI_ASSIGN_OR_RETURN(const auto both, algebra_.IntersectStrings(string, matching));
  return both ? std::vector<StringCase>{*both} : none;
}

Result<ArrayCase> SchemaSets::Arrays(const Site& site) {
  ArrayCase array;
  DI_ASSIGN_OR_RETURN(array.min, Count(site, "minItems", 0));
  DI_ASSIGN_OR_RETURN(array.max, Count(site, "maxItems", kUnbounded));
  DI_RETURN_IF_ERROR(Items(site, array));
  DI_RETURN_IF_ERROR(ContainedItems(site, array));
  if (const JsonNode* unique = site.Find("uniqueItems")) {
    if (!unique->is_boolean()) return document_.Invalid(site.schema, "uniqueItems", "no boolean");
    if (unique->is(Kind::kTrue)) array.unique = &site.schema;
  }
  return array;
}

Status SchemaSets::Items(const Site& site, ArrayCase& array) {
  const JsonNode* items = site.Find("items");
  const bool listed = items != nullptr && items->is(Kind::kArray);
  DI_ASSIGN_OR_RETURN(const std::vector<JsonNode>* prefix,
                      SchemaList(site, listed ? "items" : "prefixItems"));
  if (prefix != nullptr) {
    for (const JsonNode& item : *prefix) array.prefix.push_back(ChildOf(site, item));
  }
  const std::string_view rest_keyword = listed ? "additionalItems" : "items";
  const JsonNode* rest = site.Find(rest_keyword);
  if (rest != nullptr) {
    DI_RETURN_IF_ERROR(CheckSchema(site, rest_keyword, *rest));
    array.rest = ChildOf(site, *rest);
  }
  array.evaluated = rest != nullptr ? kUnbounded : static_cast<uint32_t>(array.prefix.size());
  return {};
}

Status SchemaSets::ContainedItems(const Site& site, ArrayCase& array) {
  const JsonNode* contains = site.Find("contains");
  if (contains == nullptr) return {};
  DI_RETURN_IF_ERROR(CheckSchema(site, "contains", *contains));
  ArrayCase::Contains wanted{ChildOf(site, *contains), 0, 0, 0};
  DI_ASSIGN_OR_RETURN(wanted.min, Count(site, "minContains", 1));
  DI_ASSIGN_OR_RETURN(wanted.max, Count(site, "maxContains", kUnbounded));
  if (wanted.min > 0 || wanted.max != kUnbounded) array.contains.push_back(wanted);
  if (site.draft != SchemaDraft::k2019) array.evaluated_terms.push_back(wanted.term);
  return {};
}

Result<ObjectCase> SchemaSets::Objects(const Site& site) {
  ObjectCase object;
  DI_ASSIGN_OR_RETURN(object.min, Count(site, "minProperties", 0));
  DI_ASSIGN_OR_RETURN(object.max, Count(site, "maxProperties", kUnbounded));
  object.min_from = &site.schema;
  if (const JsonNode* required = site.Find("required")) {
    if (!required->is(Kind::kArray)) {
      return document_.Invalid(site.schema, "required", "not an array of strings");
    }
    for (const JsonNode& name : required->items) {
      if (!name.is(Kind::kString)) {
        return document_.Invalid(site.schema, "required", "not an array of strings");
      }
      object.required.emplace(name.text, kEverything);
    }
  }
  DI_RETURN_IF_ERROR(Members(site, object));
  DI_RETURN_IF_ERROR(MemberNames(site, object));
  return object;
}

Status SchemaSets::Members(const Site& site, ObjectCase& object) {
  NameSet covered;
  for (const std::string_view keyword : {"properties", "patternProperties"}) {
    const JsonNode* map = site.Find(keyword);
    if (map == nullptr) continue;
    if (!map->is(Kind::kObject)) return document_.Invalid(site.schema, keyword, "not an object");
    for (const auto& [name, schema] : map->members) {
      DI_RETURN_IF_ERROR(
          CheckSchema(site, std::string(keyword) + "/" + PointerToken(name), schema));
      const Term term = ChildOf(site, schema);
      if (keyword == "properties") {
        object.named.emplace(name, term);
        covered.names.insert(name);
        if (options_.key_order == JsonSchemaOptions::KeyOrder::kDeclared) {
          object.order.push_back(name);
        }
        continue;
      }
      DI_ASSIGN_OR_RETURN(const auto pattern, Pattern(site, keyword, name));
      DI_ASSIGN_OR_RETURN(NameSet matching, NamesOf(*pattern));
      covered.Add(matching);
      object.others.push_back({std::move(matching), term});
    }
  }
  const JsonNode* rest = site.Find("additionalProperties");
  if (rest != nullptr) {
    DI_RETURN_IF_ERROR(CheckSchema(site, "additionalProperties", *rest));
    const Term term = ChildOf(site, *rest);
    if (term != kEverything) object.others.push_back({covered.Complement(), term});
  }
  if (site.notes == Notes::kYes) {
    object.evaluated = rest != nullptr ? NameSet::All() : std::move(covered);
  }
  return {};
}

Result<NameSet> SchemaSets::NamesOf(const Dfa& words) {
  NameSet set;
  if (const auto listed = FiniteTexts(words, kMaxListedNames)) {
    set.names.insert(listed->begin(), listed->end());
  } else {
    DI_ASSIGN_OR_RETURN(Dfa bytes, EncodeCanonicalString(words, budget_));
    set.patterns.push_back(std::make_shared<const Dfa>(std::move(bytes)));
  }
  return set;
}

Status SchemaSets::MemberNames(const Site& site, ObjectCase& object) {
  const JsonNode* names = site.Find("propertyNames");
  if (names == nullptr) return {};
  DI_RETURN_IF_ERROR(CheckSchema(site, "propertyNames", *names));
  DI_ASSIGN_OR_RETURN(const ValueSet allowed, InPlace(ChildOf(site, *names), Notes::kNo));
  for (const StringCase& string : allowed.strings) {
    if (string.words == nullptr && string.min == 0 && string.max == kUnbounded) return {};
  }
  DI_ASSIGN_OR_RETURN(const Dfa words, algebra_.WordsOf(allowed.strings));
  DI_ASSIGN_OR_RETURN(const NameSet set, NamesOf(words));
  object.others.push_back({set.Complement(), kNothing});
  return {};
}

}  // namespace deepinfer::grammar
