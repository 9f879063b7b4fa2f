// Keywords that apply other schemas to the same value.
#include <algorithm>

#include "grammar/json_schema/schema_sets.h"
#include "grammar/json_schema/uri.h"

namespace deepinfer::grammar {
namespace {

using Kind = JsonNode::Kind;

// With notes, anyOf takes every set of branches: 2 to this power.
constexpr size_t kMaxNotedBranches = 6;

void ForgetNotes(ValueSet& set) {
  for (ArrayCase& array : set.arrays) {
    array.evaluated = 0;
    array.evaluated_terms.clear();
  }
  for (ObjectCase& object : set.objects) object.evaluated = NameSet();
}

}  // namespace

Status SchemaSets::Cut(ValueSet& set, const ValueSet& by) {
  DI_ASSIGN_OR_RETURN(set, algebra_.Intersect(set, by));
  return {};
}

Result<ValueSet> SchemaSets::Expand(const SchemaTerm& term, Notes notes) {
  const JsonNode& schema = *term.schema;
  if (schema.is_boolean()) {
    return schema.is(Kind::kTrue) ? ValueSet::Everything() : ValueSet();
  }
  Site site{schema, document_.draft_of(schema), term.scope, notes};
  const bool applies_unevaluated =
      site.Find("unevaluatedItems") != nullptr || site.Find("unevaluatedProperties") != nullptr;
  if (applies_unevaluated) site.notes = Notes::kYes;
  if (!HasKeyword(site.draft, "siblings of $ref") && schema.Find("$ref") != nullptr) {
    ValueSet set = ValueSet::Everything();
    DI_RETURN_IF_ERROR(References(site, set));
    return set;
  }
  DI_ASSIGN_OR_RETURN(ValueSet set, Assertions(site));
  if (const JsonNode* constant = site.Find("const")) {
    DI_ASSIGN_OR_RETURN(const ValueSet one, SetOfConstant(*constant));
    DI_RETURN_IF_ERROR(Cut(set, one));
  }
  if (const JsonNode* values = site.Find("enum")) {
    if (!values->is(Kind::kArray)) return document_.Invalid(schema, "enum", "not an array");
    DI_ASSIGN_OR_RETURN(const ValueSet listed, SetOfConstants(values->items));
    DI_RETURN_IF_ERROR(Cut(set, listed));
  }
  DI_RETURN_IF_ERROR(References(site, set));
  DI_RETURN_IF_ERROR(Combinations(site, set));
  DI_RETURN_IF_ERROR(Conditions(site, set));
  for (const std::string_view keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    DI_RETURN_IF_ERROR(Dependencies(site, keyword, set));
  }
  if (applies_unevaluated) DI_RETURN_IF_ERROR(Unevaluated(site, set));
  if (notes == Notes::kNo) ForgetNotes(set);
  return set;
}

Status SchemaSets::References(const Site& site, ValueSet& set) {
  for (const std::string_view keyword : {"$ref", "$dynamicRef", "$recursiveRef"}) {
    const JsonNode* reference = site.Find(keyword);
    if (reference == nullptr) continue;
    if (!reference->is(Kind::kString)) {
      return document_.Invalid(site.schema, keyword, "not a string");
    }
    DI_ASSIGN_OR_RETURN(const JsonNode* target, DynamicTarget(site, keyword, *reference));
    DI_ASSIGN_OR_RETURN(const ValueSet referred, InPlace(ChildOf(site, *target), site.notes));
    DI_RETURN_IF_ERROR(Cut(set, referred));
  }
  return {};
}

// Dynamic references lead to the outermost resource on the way here that has the same anchor, if
// what they name is such an anchor at all.
Result<const JsonNode*> SchemaSets::DynamicTarget(const Site& site, std::string_view keyword,
                                                  const JsonNode& reference) {
  DI_ASSIGN_OR_RETURN(const JsonNode* target,
                      document_.Resolve(site.schema, keyword, reference.text));
  if (keyword == "$ref") return target;
  const SchemaDocument::Resource& owner = document_.resource(document_.resource_of(*target));
  const std::string anchor = SplitFragment(reference.text).fragment;
  const auto same = owner.dynamic_anchors.find(anchor);
  const bool dynamic = keyword == "$dynamicRef"
                           ? same != owner.dynamic_anchors.end() && same->second == target
                           : owner.recursive_anchor && owner.root == target;
  if (!dynamic) return target;
  for (const uint32_t entered : scopes_[site.scope]) {
    const SchemaDocument::Resource& resource = document_.resource(entered);
    if (keyword == "$recursiveRef") {
      if (resource.recursive_anchor) return resource.root;
      continue;
    }
    const auto found = resource.dynamic_anchors.find(anchor);
    if (found != resource.dynamic_anchors.end()) return found->second;
  }
  return target;
}

Status SchemaSets::Combinations(const Site& site, ValueSet& set) {
  DI_ASSIGN_OR_RETURN(const std::vector<JsonNode>* all, SchemaList(site, "allOf"));
  if (all != nullptr) {
    for (const JsonNode& branch : *all) {
      DI_ASSIGN_OR_RETURN(const ValueSet part, InPlace(ChildOf(site, branch), site.notes));
      DI_RETURN_IF_ERROR(Cut(set, part));
    }
  }
  DI_ASSIGN_OR_RETURN(const std::vector<JsonNode>* any, SchemaList(site, "anyOf"));
  if (any != nullptr) {
    DI_ASSIGN_OR_RETURN(const ValueSet part, AnyOf(site, *any));
    DI_RETURN_IF_ERROR(Cut(set, part));
  }
  DI_ASSIGN_OR_RETURN(const std::vector<JsonNode>* one, SchemaList(site, "oneOf"));
  if (one != nullptr) {
    DI_ASSIGN_OR_RETURN(const ValueSet part, OneOf(site, *one));
    DI_RETURN_IF_ERROR(Cut(set, part));
  }
  if (const JsonNode* negated = site.Find("not")) {
    DI_RETURN_IF_ERROR(CheckSchema(site, "not", *negated));
    DI_ASSIGN_OR_RETURN(const ValueSet part, InPlace(ChildOf(site, *negated), Notes::kNo));
    DI_ASSIGN_OR_RETURN(const ValueSet outside, algebra_.Complement(part));
    DI_RETURN_IF_ERROR(Cut(set, outside));
  }
  return {};
}

// With notes: every set of branches that hold, whatever the others do. Where more hold than were
// taken, more has been evaluated than is noted, and the case with them is there as well.
Result<ValueSet> SchemaSets::AnyOf(const Site& site, const std::vector<JsonNode>& branches) {
  std::vector<ValueSet> sets;
  for (const JsonNode& branch : branches) {
    DI_ASSIGN_OR_RETURN(ValueSet part, InPlace(ChildOf(site, branch), site.notes));
    sets.push_back(std::move(part));
  }
  if (site.notes == Notes::kNo || sets.size() <= 1) {
    ValueSet result;
    for (const ValueSet& part : sets) {
      DI_ASSIGN_OR_RETURN(result, algebra_.Union(std::move(result), part));
    }
    return result;
  }
  if (sets.size() > kMaxNotedBranches) {
    return document_.Refuse(
        site.schema, "anyOf",
        fmt::format("more than {} branches beside unevaluated keywords", kMaxNotedBranches));
  }
  std::vector<ValueSet> chosen = {ValueSet::Everything()};  // by the bits of the branches taken
  ValueSet result;
  for (size_t bits = 1; bits < size_t{1} << sets.size(); ++bits) {
    const size_t without = bits & (bits - 1);
    size_t lowest = 0;
    while (((bits >> lowest) & 1) == 0) ++lowest;
    DI_ASSIGN_OR_RETURN(ValueSet both, algebra_.Intersect(chosen[without], sets[lowest]));
    DI_ASSIGN_OR_RETURN(result, algebra_.Union(std::move(result), both));
    chosen.push_back(std::move(both));
  }
  return result;
}

Result<ValueSet> SchemaSets::OneOf(const Site& site, const std::vector<JsonNode>& branches) {
  std::vector<ValueSet> sets, outside;
  for (const JsonNode& branch : branches) {
    DI_ASSIGN_OR_RETURN(ValueSet part, InPlace(ChildOf(site, branch), site.notes));
    sets.push_back(std::move(part));
  }
  outside.resize(sets.size());
  std::vector<bool> has_outside(sets.size(), false);
  std::vector<ValueSet> only = sets;
  for (size_t i = 0; i < sets.size(); ++i) {
    for (size_t j = 0; j < sets.size(); ++j) {
      if (i == j) continue;
      DI_ASSIGN_OR_RETURN(const ValueSet both, algebra_.Intersect(only[i], sets[j]));
      DI_ASSIGN_OR_RETURN(const bool disjoint, algebra_.IsEmptySet(both));
      if (disjoint) continue;
      if (!has_outside[j]) {
        DI_ASSIGN_OR_RETURN(outside[j], algebra_.Complement(sets[j]));
        has_outside[j] = true;
      }
      DI_RETURN_IF_ERROR(Cut(only[i], outside[j]));
    }
  }
  ValueSet result;
  for (const ValueSet& part : only) {
    DI_ASSIGN_OR_RETURN(result, algebra_.Union(std::move(result), part));
  }
  return result;
}

Status SchemaSets::Conditions(const Site& site, ValueSet& set) {
  const JsonNode* condition = site.Find("if");
  if (condition == nullptr) return {};
  DI_RETURN_IF_ERROR(CheckSchema(site, "if", *condition));
  const JsonNode* consequence = site.Find("then");
  const JsonNode* alternative = site.Find("else");
  if (consequence == nullptr && alternative == nullptr && site.notes == Notes::kNo) return {};
  DI_ASSIGN_OR_RETURN(ValueSet inside, InPlace(ChildOf(site, *condition), site.notes));
  DI_ASSIGN_OR_RETURN(ValueSet outside, algebra_.Complement(inside));
  const auto apply = [&](std::string_view keyword, const JsonNode* schema, ValueSet& to) -> Status {
    if (schema == nullptr) return {};
    DI_RETURN_IF_ERROR(CheckSchema(site, keyword, *schema));
    DI_ASSIGN_OR_RETURN(const ValueSet part, InPlace(ChildOf(site, *schema), site.notes));
    return Cut(to, part);
  };
  DI_RETURN_IF_ERROR(apply("then", consequence, inside));
  DI_RETURN_IF_ERROR(apply("else", alternative, outside));
  DI_ASSIGN_OR_RETURN(const ValueSet either, algebra_.Union(std::move(inside), outside));
  return Cut(set, either);
}

Status SchemaSets::Dependencies(const Site& site, std::string_view keyword, ValueSet& set) {
  const JsonNode* map = site.Find(keyword);
  if (map == nullptr || set.objects.empty()) return {};
  if (!map->is(Kind::kObject)) return document_.Invalid(site.schema, keyword, "not an object");
  for (const auto& [name, wanted] : map->members) {
    const std::string path = std::string(keyword) + "/" + PointerToken(name);
    ValueSet with;
    ObjectCase present;
    present.required.emplace(name, kEverything);
    if (wanted.is(Kind::kArray) && keyword != "dependentSchemas") {
      for (const JsonNode& other : wanted.items) {
        if (!other.is(Kind::kString)) {
          return document_.Invalid(site.schema, path, "not an array of strings");
        }
        present.required.emplace(other.text, kEverything);
      }
      with.objects.push_back(std::move(present));
    } else if (wanted.is(Kind::kString) && keyword == "dependencies") {
      present.required.emplace(wanted.text, kEverything);
      with.objects.push_back(std::move(present));
    } else {
      if (keyword == "dependentRequired") {
        return document_.Invalid(site.schema, path, "not an array of strings");
      }
      DI_RETURN_IF_ERROR(CheckSchema(site, path, wanted));
      with.objects.push_back(std::move(present));
      DI_ASSIGN_OR_RETURN(const ValueSet part, InPlace(ChildOf(site, wanted), site.notes));
      DI_RETURN_IF_ERROR(Cut(with, part));
    }
    ValueSet either = ValueSet::Everything();
    either.objects[0].named.emplace(name, kNothing);
    DI_ASSIGN_OR_RETURN(either, algebra_.Union(std::move(either), with));
    DI_RETURN_IF_ERROR(Cut(set, either));
  }
  return {};
}

Status SchemaSets::Unevaluated(const Site& site, ValueSet& set) {
  if (const JsonNode* items = site.Find("unevaluatedItems")) {
    DI_RETURN_IF_ERROR(CheckSchema(site, "unevaluatedItems", *items));
    const Term term = ChildOf(site, *items);
    for (ArrayCase& array : set.arrays) {
      std::vector<Term> allowed = array.evaluated_terms;
      allowed.push_back(term);
      const Term unevaluated = terms_.Any(std::move(allowed));
      if (array.evaluated != kUnbounded) {
        while (array.prefix.size() < array.evaluated) array.prefix.push_back(array.rest);
        for (size_t i = array.evaluated; i < array.prefix.size(); ++i) {
          array.prefix[i] = terms_.All(array.prefix[i], unevaluated);
        }
        array.rest = terms_.All(array.rest, unevaluated);
      }
      array.evaluated = kUnbounded;
    }
  }
  if (const JsonNode* members = site.Find("unevaluatedProperties")) {
    DI_RETURN_IF_ERROR(CheckSchema(site, "unevaluatedProperties", *members));
    const Term term = ChildOf(site, *members);
    for (ObjectCase& object : set.objects) {
      const NameSet rest = object.evaluated.Complement();
      if (term != kEverything && !rest.is_none()) object.others.push_back({rest, term});
      object.evaluated = NameSet::All();
    }
  }
  return {};
}

}  // namespace deepinfer::grammar
