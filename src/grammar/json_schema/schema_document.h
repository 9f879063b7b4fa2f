// A JSON Schema document: where its schemas are, which draft they are written in, and what their
// references lead to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "grammar/json_schema/json_node.h"

namespace deepinfer::grammar {

// kAny: the newest draft, where keywords and forms that only older drafts (or OpenAPI) have keep
// their meaning.
enum class SchemaDraft { k4, k6, k7, k2019, k2020, kAny };

// Immutable after Create, except for an index of places that grows as references are resolved. Not
// thread-safe.
class SchemaDocument {
 public:
  // `draft` is that of schemas without "$schema". kUnsupported for a "$schema" that is none of the
  // drafts, kInvalidArgument for identifiers that are no strings or stand twice.
  static Result<std::unique_ptr<SchemaDocument>> Create(JsonNode root, SchemaDraft draft);

  const JsonNode& root() const { return root_; }

  // A schema and what is inside it up to the next identifier.
  struct Resource {
    std::string uri;  // absolute, or empty
    const JsonNode* root = nullptr;
    SchemaDraft draft = SchemaDraft::kAny;
    std::map<std::string, const JsonNode*> anchors;  // dynamic ones, too
    std::map<std::string, const JsonNode*> dynamic_anchors;
    bool recursive_anchor = false;
  };
  // Every schema that was reached by its keyword or by a reference has a resource.
  uint32_t resource_of(const JsonNode& schema) const { return places_.at(&schema).resource; }
  const Resource& resource(uint32_t index) const { return resources_[index]; }
  SchemaDraft draft_of(const JsonNode& schema) const {
    return resources_[resource_of(schema)].draft;
  }
  bool has_dynamic_references() const { return has_dynamic_references_; }

  // "#/properties/a", and with a keyword.
  std::string PathOf(const JsonNode& schema) const;
  std::string PathOf(const JsonNode& schema, std::string_view keyword) const;
  // kUnsupported: "KEYWORD is not supported at PATH: why".
  tl::unexpected<Error> Refuse(const JsonNode& schema, std::string_view keyword,
                               std::string_view why) const;
  // kInvalidArgument: "PATH: why".
  tl::unexpected<Error> Invalid(const JsonNode& schema, std::string_view keyword,
                                std::string_view why) const;

  // The schema that the reference in `schema` leads to. kUnsupported for other documents.
  Result<const JsonNode*> Resolve(const JsonNode& schema, std::string_view keyword,
                                  std::string_view reference);

 private:
  struct Place {
    const JsonNode* parent;
    std::string step;  // from the parent: "properties/a"
    uint32_t resource;
  };

  explicit SchemaDocument(JsonNode root) : root_(std::move(root)) {}

  Status Index(const JsonNode& schema, Place place);
  Status IndexIdentifiers(const JsonNode& schema, Place& place);
  Status AddAnchor(const JsonNode& schema, uint32_t resource, const std::string& name,
                   bool dynamic);
  Status IndexChildren(const JsonNode& schema, uint32_t resource);

  const JsonNode root_;
  std::vector<Resource> resources_;
  std::map<std::string, uint32_t> resource_by_uri_;
  std::unordered_map<const JsonNode*, Place> places_;
  bool has_dynamic_references_ = false;
};

// Whether a draft gives a meaning to a keyword that came or went with a draft.
bool HasKeyword(SchemaDraft draft, std::string_view keyword);

}  // namespace deepinfer::grammar
