// References, drafts, and what is refused where.
#include "tests/unit/grammar/json_schema/json_schema_test_util.h"

namespace deepinfer::grammar {
namespace {

using testing::HasSubstr;

TEST(JsonSchemaReferences, PointersAnchorsAndIdentifiers) {
  CheckJudged(
      {{R"({"$defs": {"a~b/c%d": {"type": "integer"}}, "$ref": "#/$defs/a~0b~1c%25d"})",
        {"1"},
        {"\"x\""}},
       {R"({"$defs": {"x": {"$anchor": "here", "type": "null"}}, "items": {"$ref": "#here"}})",
        {"[null]"},
        {"[1]"}},
       {R"({"$id": "http://x.org/a/b.json", "$defs": {"y": {"$id": "/c.json", "$defs":
            {"z": {"type": "boolean"}}}}, "$ref": "../c.json#/$defs/z"})",
        {"true"},
        {"1"}},
       {R"({"$ref": "#/$defs/a", "minimum": 3, "$defs": {"a": {"maximum": 5}}})",
        {"4"},
        {"2", "6"}}});
}

TEST(JsonSchemaReferences, RecursionEndsInTheGrammarNotInTheReader) {
  const char* tree = R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object",
      "properties": {"v": {"type": "integer"}, "c": {"type": "array", "items":
      {"$ref": "#/$defs/node"}}}, "required": ["v"], "additionalProperties": false}}})";
  CheckJudged({{tree,
                {R"({"v": 1})", R"({"v": 1, "c": [{"v": 2, "c": []}, {"v": 3}]})"},
                {R"({"v": 1, "c": [{"c": []}]})"}},
               // Two recursive schemas at once.
               {R"({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {
                    "a": {"properties": {"n": {"$ref": "#/$defs/a"}, "x": {"type": "integer"}}},
                    "b": {"properties": {"n": {"$ref": "#/$defs/b"}, "x": {"minimum": 3}}}},
                    "type": "object"})",
                {R"({"n": {"n": {"x": 4}}})", R"({"n": 1})"},
                {R"({"n": {"n": {"x": 1}}})", R"({"n": {"x": 4.5}})"}},
               // Every instance would be infinite.
               {R"({"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]})",
                {},
                {"{}", R"({"n": {}})"}}});
}

TEST(JsonSchemaReferences, DynamicAnchorsAreTheOutermost) {
  const char* schema = R"({"$id": "https://x.org/root", "$ref": "list", "$defs": {
      "foo": {"$dynamicAnchor": "items", "type": "string"},
      "list": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#items"},
               "$defs": {"items": {"$dynamicAnchor": "items"}}}}})";
  CheckJudged({{schema, {"[\"a\"]"}, {"[1]"}}});
}

TEST(JsonSchemaReferences, DraftsDifferInWhatKeywordsMean) {
  JsonSchemaOptions options;
  options.draft = SchemaDraft::k7;
  CheckJudged(
      {{R"({"$ref": "#/definitions/a", "maximum": 1, "definitions": {"a": {"minimum": 0}}})",
        {"5"},
        {"-1"}},
       {R"({"prefixItems": [{"type": "null"}]})", {"[1]"}, {}}},
      options);
  options.draft = SchemaDraft::k4;
  CheckJudged({{R"({"id": "http://x.org/a", "definitions": {"n": {"id": "b", "type": "null"}},
                    "items": {"$ref": "b"}, "const": 1})",
                {"[null]", "2"},
                {"[1]"}}},
              options);
}

TEST(JsonSchemaRefusals, NameTheKeywordAndItsPath) {
  EXPECT_THAT(Refusal(R"({"items": {"$ref": "http://elsewhere.org/x"}})"),
              HasSubstr("$ref is not supported at #/items/$ref"));
  EXPECT_THAT(Refusal(R"({"$schema": "http://own.org/meta"})"), HasSubstr("#/$schema"));
  EXPECT_THAT(Refusal(R"x({"properties": {"a/b": {"pattern": "(?=x)"}}})x"),
              HasSubstr("pattern is not supported at #/properties/a~1b/pattern"));
  EXPECT_THAT(Refusal(R"({"multipleOf": 0.123456789})"),
              HasSubstr("multipleOf is not supported at #/multipleOf"));
  EXPECT_THAT(Refusal(R"({"minProperties": 3})"),
              HasSubstr("minProperties is not supported at #/minProperties"));
  EXPECT_THAT(Refusal(R"({"not": {"uniqueItems": true}})"),
              HasSubstr("uniqueItems is not supported at #/not/uniqueItems"));
}

TEST(JsonSchemaRefusals, WhatIsNoSchemaIsAnError) {
  EXPECT_THAT(Refusal(R"({"type": "strin"})"), HasSubstr("#/type"));
  EXPECT_THAT(Refusal(R"({"properties": {"a": 1}})"), HasSubstr("#/properties/a: not a schema"));
  EXPECT_THAT(Refusal(R"({"allOf": [{"minimum": "1"}]})"), HasSubstr("#/allOf/0/minimum"));
  EXPECT_THAT(Refusal(R"({"$ref": "#/nothing"})"), HasSubstr("leads to nothing"));
  EXPECT_THAT(Refusal(R"({"a": 1, "b": {"c": 1, "c": 2}})"), HasSubstr("\"c\" stands twice"));
  EXPECT_THAT(Refusal(R"({"a": 1)"), HasSubstr("no JSON at byte"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("not an object"));
  EXPECT_THAT(Refusal(R"({"$ref": "#"})"), HasSubstr("refers to itself without content"));
  EXPECT_THAT(
      Refusal(R"({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}})"),
      HasSubstr("refers to itself without content"));
}

}  // namespace
}  // namespace deepinfer::grammar
