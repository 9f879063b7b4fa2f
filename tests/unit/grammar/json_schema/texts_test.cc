// Which spellings of an instance an output may have.
#include "tests/unit/grammar/json_schema/json_schema_test_util.h"

namespace deepinfer::grammar {
namespace {

constexpr const char* kObject =
    R"({"properties": {"b": {"type": "integer"}, "a": {"type": "array"}},
                                    "required": ["a"], "additionalProperties": false})";

TEST(JsonSchemaTexts, FreeWhitespaceIsThatOfPrinters) {
  EXPECT_TRUE(WritesText(kObject, R"({"a":[],"b":1})"));
  EXPECT_TRUE(WritesText(kObject, R"({"a": [], "b": 1})"));
  EXPECT_TRUE(
      WritesText(kObject, "{\n    \"a\": [\n        1,\n        2\n    ],\n\t\"b\": 1\r\n}"));
  EXPECT_FALSE(WritesText(kObject, R"({"a" : []})"));
  EXPECT_FALSE(WritesText(kObject, "{\n\n\"a\":[]}"));
  EXPECT_FALSE(WritesText(kObject, " {\"a\":[]}"));
}

TEST(JsonSchemaTexts, CompactHasNone) {
  JsonSchemaOptions options;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  EXPECT_TRUE(WritesText(kObject, R"({"a":[1,{"x":2}],"b":1})", options));
  EXPECT_FALSE(WritesText(kObject, R"({"a":[], "b":1})", options));
  EXPECT_FALSE(WritesText(kObject, R"({"a": []})", options));
}

TEST(JsonSchemaTexts, DeclaredOrderIsThatOfProperties) {
  JsonSchemaOptions options;
  options.key_order = JsonSchemaOptions::KeyOrder::kDeclared;
  EXPECT_TRUE(WritesText(kObject, R"({"b":1,"a":[]})", options));
  EXPECT_TRUE(WritesText(kObject, R"({"a":[]})", options));
  EXPECT_FALSE(WritesText(kObject, R"({"a":[],"b":1})", options));
  EXPECT_TRUE(WritesText(kObject, R"({"a":[],"b":1})"));
  const char* open = R"({"properties": {"z": true, "y": true}, "minProperties": 1})";
  EXPECT_TRUE(WritesText(open, R"({"z":1,"y":1,"q":1,"a":2})", options));
  EXPECT_FALSE(WritesText(open, R"({"q":1,"y":1})", options));
}

// An order without a minimum in reach would be a dead end.
TEST(JsonSchemaTexts, DeclaredOrderKeepsTheMinimumInReach) {
  JsonSchemaOptions options;
  options.key_order = JsonSchemaOptions::KeyOrder::kDeclared;
  const char* schema = R"({"properties": {"a": true, "b": true, "c": true}, "minProperties": 2,
                           "additionalProperties": false})";
  EXPECT_TRUE(WritesText(schema, R"({"a":1,"c":1})", options));
  EXPECT_TRUE(WritesText(schema, R"({"b":1,"c":1})", options));
  const auto grammar = CompileSchema(schema, options);
  Matcher matcher(*grammar);
  EXPECT_FALSE(matcher.AdvanceBytes(R"({"c)").has_value());
}

TEST(JsonSchemaTexts, NamesAreNotRepeated) {
  EXPECT_FALSE(WritesText(kObject, R"({"a":[],"a":[]})"));
  EXPECT_FALSE(WritesText(R"({"properties": {"a": {"type": "integer"}}})", R"({"\u0061":"x"})"));
}

TEST(JsonSchemaTexts, StringsTakeEveryEscapeUnlessTheyAreConfined) {
  EXPECT_TRUE(WritesText(R"({"type": "string"})", R"("\/\u00e9\ud83d\ude00\n\"")"));
  EXPECT_TRUE(WritesText(R"({"type": "string", "maxLength": 2})", R"("\u00e9\ud83d\ude00")"));
  EXPECT_FALSE(WritesText(R"({"type": "string"})", R"("\ud83d")"));
  EXPECT_FALSE(WritesText(R"({"type": "string"})", "\"\n\""));
  EXPECT_FALSE(WritesText(R"({"const": "a"})", R"("\u0061")"));
}

TEST(JsonSchemaTexts, NumbersKeepZerosWhereNotAllAreIntegers) {
  EXPECT_TRUE(WritesText(R"({"type": "number"})", "-1.50e+07"));
  EXPECT_TRUE(WritesText(R"({"type": "number", "minimum": 1})", "1.50"));
  EXPECT_TRUE(WritesText(R"({"type": "number", "minimum": 1})", "2.0"));
  EXPECT_FALSE(WritesText(R"({"type": "integer"})", "2.0"));
  EXPECT_FALSE(WritesText(R"({"type": "integer"})", "-0"));
  EXPECT_FALSE(WritesText(R"({"type": "integer"})", "01"));
}

TEST(JsonSchemaTexts, AnyObjectIsJsonMode) {
  Budget budget{Limits()};
  auto ir = AnyJsonObjectToIr({}, budget);
  ASSERT_TRUE(ir.has_value());
  const auto grammar = *CompiledGrammar::Create(std::move(*ir), SchemaVocabulary(), budget);
  Matcher matcher(grammar);
  ASSERT_TRUE(matcher.AdvanceBytes(R"({"a": [null, {"b": -1.5e3}], "c": "\u00e9"})").has_value());
  EXPECT_TRUE(matcher.MustEnd());
  EXPECT_FALSE(Matcher(grammar).AdvanceBytes("[").has_value());
}

}  // namespace
}  // namespace deepinfer::grammar
