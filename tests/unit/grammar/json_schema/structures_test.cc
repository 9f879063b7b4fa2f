// Arrays, objects, and combinations of schemas.
#include "tests/unit/grammar/json_schema/json_schema_test_util.h"

namespace deepinfer::grammar {
namespace {

TEST(JsonSchemaArrays, ItemsByPlaceAndNumber) {
  CheckJudged(
      {{R"({"prefixItems": [{"type": "integer"}, {"type": "string"}]})",
        {"[]", "[1]", "[1, \"a\", null]", "{}"},
        {"[\"a\"]", "[1, 2]"}},
       {R"({"prefixItems": [true], "items": {"type": "null"}, "minItems": 2, "maxItems": 3})",
        {"[5, null]", "[5, null, null]"},
        {"[5]", "[5, 5]", "[5, null, null, null]"}},
       {R"({"items": [{"type": "integer"}], "additionalItems": false})",
        {"[]", "[1]"},
        {"[\"a\"]", "[1, 2]"}},
       {R"({"items": false})", {"[]"}, {"[1]"}},
       {R"({"minItems": 2, "maxItems": 1, "type": "array"})", {}, {"[1]", "[1, 2]"}},
       {R"({"items": {"type": "integer"}, "minItems": 300, "maxItems": 100000})", {}, {"[1]"}}});
}

TEST(JsonSchemaArrays, ContainedItemsAreCounted) {
  CheckJudged(
      {{R"({"contains": {"minimum": 5}})", {"[5]", "[1, 6, 2]", "{}"}, {"[]", "[3, 4]"}},
       {R"({"contains": {"const": 1}, "minContains": 2, "maxContains": 3})",
        {"[1, 1]", "[0, 1, 2, 1, 1]"},
        {"[1]", "[1, 1, 1, 1]", "[]"}},
       {R"({"contains": {"const": 1}, "minContains": 0, "maxContains": 1})",
        {"[]", "[1, 2]"},
        {"[1, 1]"}},
       {R"({"allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}], "maxItems": 2})",
        {"[2, 1]"},
        {"[1, 1]", "[1, 2, 1]"}},
       {R"({"not": {"contains": {"const": 1}}, "type": "array"})", {"[]", "[2]"}, {"[2, 1]"}}});
}

TEST(JsonSchemaArrays, DistinctItemsOfFewValues) {
  CheckJudged({{R"({"items": {"enum": ["a", "b", 1]}, "uniqueItems": true, "minItems": 1})",
                {"[\"b\"]", "[1, \"a\", \"b\"]"},
                {"[]", "[\"a\", \"a\"]", "[1, 1.0]"}},
               {R"({"prefixItems": [{"type": "boolean"}, {"type": "boolean"}], "items": false,
                    "uniqueItems": true})",
                {"[]", "[true]", "[true, false]"},
                {"[true, true]", "[true, false, true]"}},
               {R"({"uniqueItems": true, "maxItems": 1})", {"[{}]"}, {"[1, 2]"}}});
  EXPECT_THAT(Refusal(R"({"properties": {"a": {"type": "array", "uniqueItems": true}}})"),
              testing::HasSubstr("uniqueItems is not supported at #/properties/a/uniqueItems"));
}

TEST(JsonSchemaObjects, MembersByName) {
  CheckJudged(
      {{R"({"properties": {"a": {"type": "integer"}}, "required": ["a", "b"]})",
        {R"({"b": null, "a": 1, "c": {}})", "[]"},
        {R"({"a": 1})", R"({"a": "x", "b": 1})"}},
       {R"({"properties": {"a": true, "q\"\n": false}, "additionalProperties": false})",
        {"{}", R"({"a": []})"},
        {R"({"b": 1})", R"({"q\"\n": 1})"}},
       {R"({"properties": {"ab": {"type": "integer"}}, "patternProperties": {"^a": {"maximum": 5},
            "b$": {"minimum": 2}}, "additionalProperties": {"type": "null"}})",
        {R"({"ab": 3, "ax": 1, "xb": 9, "z": null})"},
        {R"({"ab": 1})", R"({"ab": 2.5})", R"({"ax": 6})", R"({"xb": 1})", R"({"z": 1})"}},
       {R"({"propertyNames": {"maxLength": 2}})", {R"({"ab": 1})"}, {R"({"abc": 1})"}},
       {R"({"propertyNames": {"enum": ["x", "y"]}, "minProperties": 2})",
        {R"({"y": 1, "x": 2})"},
        {R"({"x": 1})", R"({"z": 1, "x": 1})"}},
       {R"({"minProperties": 1, "maxProperties": 2})",
        {R"({"a": 1})", R"({"a": 1, "b": 1})"},
        {"{}", R"({"a": 1, "b": 1, "c": 1})"}}});
}

TEST(JsonSchemaObjects, Dependencies) {
  CheckJudged({{R"({"dependentRequired": {"a": ["b"]}})",
                {"{}", R"({"b": 1})", R"({"a": 1, "b": 1})"},
                {R"({"a": 1})"}},
               {R"({"dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}})",
                {R"({"b": "x"})", R"({"a": 1, "b": 1})"},
                {R"({"a": 1, "b": "x"})"}},
               {R"({"dependencies": {"a": ["b"], "c": {"maxProperties": 1}}})",
                {R"({"c": 1})", R"({"a": 1, "b": 1})"},
                {R"({"a": 1})", R"({"c": 1, "d": 1})"}}});
}

TEST(JsonSchemaObjects, UnevaluatedMembersSeeEveryBranchThatHolds) {
  CheckJudged(
      {{R"({"properties": {"a": true}, "anyOf": [{"properties": {"b": {"const": 1}},
            "required": ["b"]}, {"properties": {"c": true}, "required": ["c"]}],
            "unevaluatedProperties": false})",
        {R"({"a": 1, "b": 1})", R"({"b": 1, "c": 2})"},
        {R"({"a": 1})", R"({"b": 2})", R"({"b": 1, "d": 1})"}},
       {R"({"prefixItems": [true], "contains": {"type": "string"}, "unevaluatedItems": false})",
        {"[1, \"a\"]", "[\"a\", \"b\"]"},
        {"[1, 2]", "[1, 2, \"a\"]"}}});
}

TEST(JsonSchemaCombinations, UnionIntersectionNegation) {
  CheckJudged(
      {{R"({"anyOf": [{"type": "integer"}, {"minimum": 2}]})", {"1", "2.5", "\"x\""}, {"1.5"}},
       {R"({"oneOf": [{"type": "integer"}, {"minimum": 2}]})", {"1", "2.5"}, {"3", "1.5"}},
       {R"({"allOf": [{"required": ["a"]}, {"properties": {"a": {"const": 1}}}], "type": "object"})",
        {R"({"a": 1})"},
        {"{}", R"({"a": 2})", "1"}},
       {R"({"not": {"type": "object", "properties": {"a": {"type": "string"}}}})",
        {"1", R"({"a": 1})"},
        {"{}", R"({"a": "x"})"}},
       {R"({"if": {"properties": {"k": {"const": 1}}, "required": ["k"]},
            "then": {"required": ["x"]}, "else": {"required": ["y"]}, "type": "object"})",
        {R"({"k": 1, "x": 0})", R"({"k": 2, "y": 0})", R"({"y": 0})"},
        {R"({"k": 1, "y": 0})", "{}", R"({"x": 0})"}},
       {R"({"oneOf": [{"properties": {"k": {"const": "a"}}, "required": ["k"],
            "additionalProperties": false}, {"properties": {"k": {"enum": ["a", "b"]}, "n": true},
            "required": ["k"], "additionalProperties": false}]})",
        {R"({"k": "b"})", R"({"k": "a", "n": 1})"},
        {R"({"k": "a"})", R"({"k": "c"})"}},
       {R"({"not": {"enum": ["a", 1, null]}, "type": ["string", "number"]})",
        {"\"b\"", "\"\"", "2"},
        {"\"a\"", "1", "null"}}});
}

}  // namespace
}  // namespace deepinfer::grammar
