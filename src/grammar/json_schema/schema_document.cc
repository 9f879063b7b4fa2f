#include "grammar/json_schema/schema_document.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "grammar/json_schema/uri.h"

namespace deepinfer::grammar {
namespace {

using Kind = JsonNode::Kind;

// Where a schema holds schemas.
constexpr std::array<std::string_view, 12> kOneSchema = {"additionalProperties",
                                                         "additionalItems",
                                                         "items",
                                                         "contains",
                                                         "not",
                                                         "if",
                                                         "then",
                                                         "else",
                                                         "propertyNames",
                                                         "unevaluatedItems",
                                                         "unevaluatedProperties",
                                                         "contentSchema"};
constexpr std::array<std::string_view, 5> kSchemaLists = {"allOf", "anyOf", "oneOf", "prefixItems",
                                                          "items"};
constexpr std::array<std::string_view, 6> kSchemaMaps = {
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"};

template <size_t n>
bool IsOneOf(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool MayBeSchema(const JsonNode& node) { return node.is(Kind::kObject) || node.is_boolean(); }

bool IsLegacy(SchemaDraft draft) { return draft <= SchemaDraft::k7; }

std::optional<SchemaDraft> DraftOfUri(std::string_view uri) {
  if (uri.ends_with('#')) uri.remove_suffix(1);
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (uri.starts_with(scheme)) uri.remove_prefix(scheme.size());
  }
  constexpr std::array<std::pair<std::string_view, SchemaDraft>, 6> kDrafts = {
      {{"json-schema.org/draft-04/schema", SchemaDraft::k4},
       {"json-schema.org/draft-06/schema", SchemaDraft::k6},
       {"json-schema.org/draft-07/schema", SchemaDraft::k7},
       {"json-schema.org/draft/2019-09/schema", SchemaDraft::k2019},
       {"json-schema.org/draft/2020-12/schema", SchemaDraft::k2020},
       {"json-schema.org/schema", SchemaDraft::k2020}}};
  for (const auto& [name, draft] : kDrafts) {
    if (uri == name) return draft;
  }
  return std::nullopt;
}

}  // namespace

bool HasKeyword(SchemaDraft draft, std::string_view keyword) {
  struct Range {
    std::string_view keyword;
    SchemaDraft first;
    SchemaDraft last;
  };
  constexpr SchemaDraft kLast = SchemaDraft::k2020;
  constexpr std::array<Range, 21> kRanges = {
      {{"id", SchemaDraft::k4, SchemaDraft::k4},
       {"$id", SchemaDraft::k6, kLast},
       {"const", SchemaDraft::k6, kLast},
       {"contains", SchemaDraft::k6, kLast},
       {"propertyNames", SchemaDraft::k6, kLast},
       {"if", SchemaDraft::k7, kLast},
       {"additionalItems", SchemaDraft::k4, SchemaDraft::k2019},
       {"$anchor", SchemaDraft::k2019, kLast},
       {"$recursiveRef", SchemaDraft::k2019, SchemaDraft::k2019},
       {"$recursiveAnchor", SchemaDraft::k2019, SchemaDraft::k2019},
       {"minContains", SchemaDraft::k2019, kLast},
       {"maxContains", SchemaDraft::k2019, kLast},
       {"dependentRequired", SchemaDraft::k2019, kLast},
       {"dependentSchemas", SchemaDraft::k2019, kLast},
       {"unevaluatedItems", SchemaDraft::k2019, kLast},
       {"unevaluatedProperties", SchemaDraft::k2019, kLast},
       {"prefixItems", kLast, kLast},
       {"$dynamicRef", kLast, kLast},
       {"$dynamicAnchor", kLast, kLast},
       {"nullable", SchemaDraft::kAny, SchemaDraft::kAny},
       {"siblings of $ref", SchemaDraft::k2019, kLast}}};
  for (const Range& range : kRanges) {
    if (range.keyword != keyword) continue;
    if (draft == SchemaDraft::kAny) return keyword != "id";
    return range.first <= draft && draft <= range.last;
  }
  return true;
}

Result<std::unique_ptr<SchemaDocument>> SchemaDocument::Create(JsonNode root, SchemaDraft draft) {
  auto document = std::unique_ptr<SchemaDocument>(new SchemaDocument(std::move(root)));
  Resource resource;
  resource.root = &document->root_;
  resource.draft = draft;
  document->resources_.push_back(std::move(resource));
  document->resource_by_uri_[""] = 0;
  DI_RETURN_IF_ERROR(document->Index(document->root_, {nullptr, "#", 0}));
  return document;
}

Status SchemaDocument::Index(const JsonNode& schema, Place place) {
  if (!places_.emplace(&schema, place).second) return {};
  if (!schema.is(Kind::kObject)) return {};
  DI_RETURN_IF_ERROR(IndexIdentifiers(schema, place));
  places_[&schema].resource = place.resource;
  return IndexChildren(schema, place.resource);
}

Status SchemaDocument::IndexIdentifiers(const JsonNode& schema, Place& place) {
  SchemaDraft draft = resources_[place.resource].draft;
  if (const JsonNode* dialect = schema.Find("$schema")) {
    const bool at_root = resources_[place.resource].root == &schema;
    const std::optional<SchemaDraft> named =
        dialect->is(Kind::kString) ? DraftOfUri(dialect->text) : std::nullopt;
    if (!named) return Refuse(schema, "$schema", "it names none of the drafts 4 to 2020-12");
    if (at_root) resources_[place.resource].draft = *named;
    // A schema inside may only change it along with its identifier.
    if (at_root || schema.Find("$id") != nullptr || schema.Find("id") != nullptr) draft = *named;
  }
  if (!HasKeyword(draft, "siblings of $ref") && schema.Find("$ref") != nullptr) return {};
  const bool old_name = HasKeyword(draft, "id");
  const JsonNode* id = schema.Find(old_name ? "id" : "$id");
  if (id != nullptr) {
    if (!id->is(Kind::kString)) return Invalid(schema, old_name ? "id" : "$id", "not a string");
    if (id->text.starts_with('#')) {
      if (IsLegacy(draft) || draft == SchemaDraft::kAny) {
        DI_RETURN_IF_ERROR(AddAnchor(schema, place.resource, id->text.substr(1), false));
      }
    } else {
      const std::string uri =
          SplitFragment(ResolveUri(resources_[place.resource].uri, id->text)).document;
      if (&schema != resources_[place.resource].root) {
        Resource resource;
        resource.root = &schema;
        resource.draft = draft;
        place.resource = static_cast<uint32_t>(resources_.size());
        resources_.push_back(std::move(resource));
      }
      resources_[place.resource].uri = uri;
      if (!resource_by_uri_.emplace(uri, place.resource).second) {
        return Invalid(schema, "$id", "another schema has the same identifier");
      }
    }
  }
  const bool modern = HasKeyword(draft, "$anchor");
  if (const JsonNode* anchor = schema.Find("$anchor"); modern && anchor != nullptr) {
    if (!anchor->is(Kind::kString)) return Invalid(schema, "$anchor", "not a string");
    DI_RETURN_IF_ERROR(AddAnchor(schema, place.resource, anchor->text, false));
  }
  const JsonNode* dynamic = schema.Find("$dynamicAnchor");
  if (dynamic != nullptr && HasKeyword(draft, "$dynamicAnchor")) {
    if (!dynamic->is(Kind::kString)) return Invalid(schema, "$dynamicAnchor", "not a string");
    DI_RETURN_IF_ERROR(AddAnchor(schema, place.resource, dynamic->text, true));
  }
  if (const JsonNode* recursive = schema.Find("$recursiveAnchor")) {
    if (recursive->is(Kind::kTrue)) resources_[place.resource].recursive_anchor = true;
  }
  has_dynamic_references_ |=
      schema.Find("$dynamicRef") != nullptr || schema.Find("$recursiveRef") != nullptr;
  return {};
}

Status SchemaDocument::AddAnchor(const JsonNode& schema, uint32_t resource, const std::string& name,
                                 bool dynamic) {
  Resource& owner = resources_[resource];
  if (!owner.anchors.emplace(name, &schema).second) {
    return Invalid(schema, dynamic ? "$dynamicAnchor" : "$anchor",
                   fmt::format("another schema has the anchor \"{}\"", name));
  }
  if (dynamic) owner.dynamic_anchors.emplace(name, &schema);
  return {};
}

Status SchemaDocument::IndexChildren(const JsonNode& schema, uint32_t resource) {
  for (const auto& [key, value] : schema.members) {
    const std::string step = PointerToken(key);
    if (MayBeSchema(value) && IsOneOf(kOneSchema, key)) {
      DI_RETURN_IF_ERROR(Index(value, {&schema, step, resource}));
    } else if (value.is(Kind::kArray) && IsOneOf(kSchemaLists, key)) {
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (!MayBeSchema(value.items[i])) continue;
        DI_RETURN_IF_ERROR(
            Index(value.items[i], {&schema, fmt::format("{}/{}", step, i), resource}));
      }
    } else if (value.is(Kind::kObject) && IsOneOf(kSchemaMaps, key)) {
      for (const auto& [name, child] : value.members) {
        if (!MayBeSchema(child)) continue;
        DI_RETURN_IF_ERROR(Index(child, {&schema, step + "/" + PointerToken(name), resource}));
      }
    }
  }
  return {};
}

std::string SchemaDocument::PathOf(const JsonNode& schema) const {
  std::vector<const std::string*> steps;
  for (const JsonNode* node = &schema; node != nullptr;) {
    const Place& place = places_.at(node);
    steps.push_back(&place.step);
    node = place.parent;
  }
  std::string path;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (!path.empty()) path += '/';
    path += **step;
  }
  return path;
}

std::string SchemaDocument::PathOf(const JsonNode& schema, std::string_view keyword) const {
  return PathOf(schema) + "/" + std::string(keyword);
}

tl::unexpected<Error> SchemaDocument::Refuse(const JsonNode& schema, std::string_view keyword,
                                             std::string_view why) const {
  return MakeError(ErrorCode::kUnsupported, "{} is not supported at {}: {}", keyword,
                   PathOf(schema, keyword), why);
}

tl::unexpected<Error> SchemaDocument::Invalid(const JsonNode& schema, std::string_view keyword,
                                              std::string_view why) const {
  return MakeError(ErrorCode::kInvalidArgument, "{}: {}", PathOf(schema, keyword), why);
}

Result<const JsonNode*> SchemaDocument::Resolve(const JsonNode& schema, std::string_view keyword,
                                                std::string_view reference) {
  const Resource& base = resources_[resource_of(schema)];
  const SplitUri target = SplitFragment(ResolveUri(base.uri, reference));
  const auto found = resource_by_uri_.find(target.document);
  if (found == resource_by_uri_.end()) {
    return Refuse(schema, keyword,
                  fmt::format("\"{}\" leads to another document", reference.substr(0, 200)));
  }
  const Resource& resource = resources_[found->second];
  if (target.fragment.empty()) return resource.root;
  const std::string missing = fmt::format("\"{}\" leads to nothing", reference.substr(0, 200));
  if (!target.fragment.starts_with('/')) {
    const auto anchor = resource.anchors.find(target.fragment);
    if (anchor == resource.anchors.end()) return Invalid(schema, keyword, missing);
    return anchor->second;
  }
  const JsonNode* node = resource.root;
  const JsonNode* known = node;  // the innermost schema on the way that has a place
  std::string step;
  for (const std::string& token : PointerTokens(target.fragment)) {
    if (places_.contains(node)) {
      known = node;
      step.clear();
    }
    step += (step.empty() ? "" : "/") + PointerToken(token);
    const JsonNode* next = nullptr;
    if (node->is(Kind::kArray)) {
      for (size_t i = 0; i < node->items.size() && next == nullptr; ++i) {
        if (token == std::to_string(i)) next = &node->items[i];
      }
    } else {
      next = node->Find(token);
    }
    if (next == nullptr) return Invalid(schema, keyword, missing);
    node = next;
  }
  if (!MayBeSchema(*node)) {
    return Invalid(schema, keyword,
                   fmt::format("\"{}\" leads to no schema", reference.substr(0, 200)));
  }
  if (!places_.contains(node)) {
    DI_RETURN_IF_ERROR(Index(*node, {known, step, resource_of(*known)}));
  }
  return node;
}

}  // namespace deepinfer::grammar
