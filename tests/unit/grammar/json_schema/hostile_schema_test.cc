// Schemas made to exhaust their reader: each is answered or refused within limits that are counted.
#include "tests/unit/grammar/json_schema/json_schema_test_util.h"

namespace deepinfer::grammar {
namespace {

std::string Repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string Joined(int count, const std::function<std::string(int)>& part) {
  std::string result;
  for (int i = 0; i < count; ++i) result += (i > 0 ? "," : "") + part(i);
  return result;
}

void Answer(const std::string& schema) {
  const auto grammar = CompileSchema(schema);
  EXPECT_TRUE(grammar.has_value() || !grammar.error().message.empty());
}

TEST(HostileSchema, TenThousandConstants) {
  const std::string schema =
      "{\"enum\":[" + Joined(10'000, [](int i) { return fmt::format("\"value {}\"", i * 7919); }) +
      "]}";
  EXPECT_TRUE(IsInstance(schema, "\"value 7919\""));
  EXPECT_FALSE(IsInstance(schema, "\"value 7918\""));
  Answer("{\"enum\":[" + Joined(10'000, [](int i) { return fmt::format("{{\"a\":{}}}", i); }) +
         "]}");
}

TEST(HostileSchema, ManyMembers) {
  const std::string members =
      Joined(5'000, [](int i) { return fmt::format("\"p{}\":{{\"type\":\"integer\"}}", i); });
  EXPECT_TRUE(IsInstance("{\"properties\":{" + members + "},\"additionalProperties\":false}",
                         R"({"p4999": 1})"));
  Answer("{\"properties\":{" + members + "}}");
}

TEST(HostileSchema, DeepNesting) {
  EXPECT_TRUE(IsInstance(Repeated("{\"items\":", 1000) + "true" + Repeated("}", 1000), "[[[1]]]"));
  Answer(Repeated("{\"properties\":{\"a\":", 900) + "{}" + Repeated("}}", 900));
  Answer(Repeated("{\"not\":", 1000) + "true" + Repeated("}", 1000));
  Answer(Repeated("{\"allOf\":[", 900) + "true" + Repeated("]}", 900));
  Answer(Repeated("[", 100'000));
  Answer(Repeated("{\"a\":", 100'000));
  Answer("{\"const\":" + Repeated("[", 1000) + Repeated("]", 1000) + "}");
}

TEST(HostileSchema, CombinationsThatMultiply) {
  const auto branch = [](int i) {
    return fmt::format("{{\"anyOf\":[{{\"required\":[\"a{}\"]}},{{\"required\":[\"b{}\"]}}]}}", i,
                       i);
  };
  Answer("{\"allOf\":[" + Joined(40, branch) + "]}");
  Answer("{\"oneOf\":[" +
         Joined(300, [](int i) { return fmt::format("{{\"required\":[\"a{}\"]}}", i); }) + "]}");
  Answer("{\"patternProperties\":{" +
         Joined(30, [](int i) { return fmt::format("\"{}.*x\":{{\"minimum\":{}}}", i, i); }) +
         "}}");
  Answer("{\"anyOf\":[" + Joined(100, branch) + "],\"unevaluatedProperties\":false}");
}

TEST(HostileSchema, Counts) {
  Answer(R"({"type": "array", "maxItems": 1000000, "items": {"type": "string"}})");
  Answer(R"({"type": "array", "minItems": 1000000})");
  Answer(R"({"type": "string", "pattern": "^(a|b)*$", "maxLength": 1000000})");
  Answer(R"({"type": "string", "minLength": 999999999999})");
  Answer(R"({"contains": {"const": 1}, "minContains": 1000000})");
  Answer(R"({"minProperties": 1000000, "maxProperties": 2000000})");
  Answer(R"({"minimum": 1e900})");
  Answer(R"({"minimum": 1e-300, "maximum": 1e300, "multipleOf": 1e-300})");
}

TEST(HostileSchema, CatastrophicPatterns) {
  for (const char* pattern : {"(a*)*b", "(.*a){30}", "(a|b)*a(a|b){30}", "a{0,1000000}",
                              "(((a?){50}){50}){50}", "^(\\\\p{L}\\\\p{N}?){0,100}$"}) {
    Answer(fmt::format("{{\"pattern\":\"{}\"}}", pattern));
    Answer(fmt::format("{{\"not\":{{\"pattern\":\"{}\"}},\"maxLength\":500}}", pattern));
    Answer(fmt::format("{{\"patternProperties\":{{\"{}\":{{\"type\":\"null\"}}}}}}", pattern));
  }
}

TEST(HostileSchema, LoopsOfReferences) {
  Answer(
      R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})");
  Answer(R"({"oneOf": [{"$ref": "#"}, {"type": "null"}]})");
  Answer(
      R"({"properties": {"a": {"not": {"$ref": "#"}}}, "not": {"properties": {"a": {"$ref": "#"}}}})");
  Answer(R"({"propertyNames": {"$ref": "#"}})");
  Answer("{\"$defs\":{" +
         Joined(3000,
                [](int i) {
                  return fmt::format("\"d{}\":{{\"items\":{{\"$ref\":\"#/$defs/d{}\"}}}}", i,
                                     i + 1);
                }) +
         ",\"d3000\":true},\"$ref\":\"#/$defs/d0\"}");
}

TEST(HostileSchema, OneMegabyte) {
  std::string schema = "{\"anyOf\":[";
  for (int i = 0; schema.size() < 1'000'000; ++i) {
    schema += fmt::format(
        "{{\"type\":\"object\",\"properties\":{{\"k\":{{\"const\":{}}},\"v{}\":{{\"type\":"
        "\"string\","
        "\"maxLength\":20}}}},\"required\":[\"k\"],\"additionalProperties\":false}},",
        i, i);
  }
  Answer(schema + "{\"type\":\"null\"}]}");
  Answer("{\"description\":\"" + std::string(1'000'000, 'x') + "\",\"type\":\"null\"}");
}

}  // namespace
}  // namespace deepinfer::grammar
