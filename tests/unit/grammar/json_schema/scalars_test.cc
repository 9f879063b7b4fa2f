// Types, numbers, strings, constants.
#include "tests/unit/grammar/json_schema/json_schema_test_util.h"

namespace deepinfer::grammar {
namespace {

TEST(JsonSchemaScalars, TypesAreToldApart) {
  CheckJudged({{R"({"type": "integer"})", {"0", "-7", "1.0", "1e3"}, {"1.5", "\"1\"", "true"}},
               {R"({"type": "number"})", {"0", "1.5", "-1e-5"}, {"null", "[]"}},
               {R"({"type": ["null", "boolean"]})", {"null", "true", "false"}, {"0", "\"\""}},
               {R"({"type": "integer", "nullable": true})", {"null", "3"}, {"1.5"}},
               {"true", {"{}", "[[null]]", "1e99"}, {}},
               {"false", {}, {"{}", "null"}},
               {R"({"title": "t"})", {"1", "{\"a\": [{}]}"}, {}}});
}

TEST(JsonSchemaScalars, BoundsAreExactAtAnySize) {
  CheckJudged(
      {{R"({"minimum": 1.1})", {"1.1", "1.10", "2", "11", "1e9"}, {"1", "1.09999", "-3", "0"}},
       {R"({"exclusiveMinimum": -2.5})", {"-2.4999", "-2", "0", "7"}, {"-2.5", "-3", "-25"}},
       {R"({"maximum": 300})", {"300", "299.99", "-1000", "0"}, {"300.01", "301", "1000"}},
       {R"({"exclusiveMaximum": 0})", {"-0.001", "-5"}, {"0", "-0.0", "1"}},
       {R"({"type": "integer", "minimum": 9, "maximum": 112})",
        {"9", "10", "99", "112"},
        {"8", "113", "200", "-10", "9.5"}},
       {R"({"minimum": 123456789012345678901234567890})",
        {"123456789012345678901234567890", "1e30"},
        {"123456789012345678901234567889"}},
       {R"({"minimum": 5, "exclusiveMinimum": true, "maximum": 7, "exclusiveMaximum": false})",
        {"5.1", "7"},
        {"5", "7.1"}},
       {R"({"minimum": 3, "maximum": 2, "type": "number"})", {}, {"2", "3"}}});
}

TEST(JsonSchemaScalars, MultiplesAreExact) {
  CheckJudged({{R"({"multipleOf": 0.01})", {"0", "-1.23", "4.5", "7"}, {"0.001", "1.234"}},
               {R"({"multipleOf": 1.5})", {"4.5", "-3", "0"}, {"1", "35", "1.50001"}},
               {R"({"multipleOf": 7, "minimum": 50})", {"56", "7000"}, {"49", "57"}},
               {R"({"multipleOf": 100})", {"100", "-1200", "0"}, {"10", "150", "1.5"}},
               {R"({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}]})", {"12", "24"}, {"8", "6"}},
               {R"({"type": "integer", "multipleOf": 1e-8})", {"12391239123"}, {"0.5"}}});
}

TEST(JsonSchemaScalars, LengthsCountCharactersNotBytes) {
  CheckJudged({{R"({"minLength": 2, "maxLength": 3})",
                {"\"ab\"", "\"äöü\"", "\"\\n\\u0000\"", "\"😀😀\"", "5"},
                {"\"a\"", "\"abcd\"", "\"😀\""}},
               {R"({"maxLength": 100000, "type": "string"})", {"\"\"", "\"abc\""}, {"1"}}});
}

TEST(JsonSchemaScalars, PatternsSearchUnlessAnchored) {
  CheckJudged({{R"({"pattern": "b+"})", {"\"abc\"", "\"b\"", "7"}, {"\"ac\"", "\"\""}},
               {R"({"pattern": "^[\"\\\\]$"})", {R"("\"")", R"("\\")"}, {R"("a")"}},
               {R"({"pattern": "^a", "maxLength": 3, "minLength": 2})", {"\"ab\""}, {"\"a\""}},
               {R"({"pattern": "^\\p{Lu}+$"})", {"\"ÄB\""}, {"\"Äb\""}}});
}

TEST(JsonSchemaScalars, ConstantsAreEqualByValue) {
  CheckJudged({{R"({"const": 2.0})", {"2", "2.0", "0.2e1"}, {"3", "\"2\""}},
               {R"({"const": {"a": [1, {"b": null}], "c": "\u0000"}})",
                {R"({"c": "\u0000", "a": [1.0, {"b": null}]})"},
                {R"({"a": [1, {"b": null}]})", R"({"a": [1, {}], "c": "\u0000"})"}},
               {R"({"enum": [1, "x", null, [], {}]})",
                {"1", "\"x\"", "null", "[]", "{}"},
                {"0", "false", "[1]", "\"\""}},
               {R"({"enum": []})", {}, {"1", "null"}},
               {R"({"type": "string", "enum": [1, "x"]})", {"\"x\""}, {"1"}}});
}

TEST(JsonSchemaScalars, FormatsAreAssertedWhereAskedFor) {
  CheckJudged(
      {{R"({"format": "date"})", {"\"2024-02-29\"", "3"}, {"\"2023-02-29\"", "\"2024-1-1\""}},
       {R"({"format": "time"})", {"\"23:59:60Z\"", "\"08:30:06+00:20\""}, {"\"24:00:00Z\""}},
       {R"({"format": "date-time"})", {"\"2024-01-31t08:30:06.28z\""}, {"\"2024-01-31\""}},
       {R"({"format": "duration"})", {"\"P1Y2M3DT4H5M6S\"", "\"P2W\""}, {"\"P1YT\"", "\"PT0.5S\""}},
       {R"({"format": "email"})", {"\"a.b@example.com\""}, {"\"a..b@example.com\"", "\"a@\""}},
       {R"({"format": "uuid"})", {"\"2eb8aa08-aa98-11ea-B4aa-73b441d16380\""}, {"\"2eb8\""}},
       {R"({"format": "uri"})", {"\"http://a.b/c?d#e\"", "\"urn:x:y\""}, {"\"/a\"", "\"a b:c\""}},
       {R"({"format": "hostname"})", {"\"a-1.example\""}, {"\"-a\"", "\"a_b\"", "\"\""}},
       {R"({"format": "ipv4"})", {"\"127.0.0.1\""}, {"\"256.0.0.1\"", "\"01.2.3.4\""}},
       {R"({"format": "ipv6"})", {"\"::1\"", "\"1::d6:192.168.0.1\""}, {"\"1::2::3\"", "\"1:2\""}},
       {R"({"format": "json-pointer"})", {"\"\"", "\"/a~1\""}, {"\"a\"", "\"/~2\""}},
       {R"({"format": "int32"})", {"\"anything\""}, {}}});
  JsonSchemaOptions notes;
  notes.formats = JsonSchemaOptions::Formats::kAnnotate;
  EXPECT_TRUE(IsInstance(R"({"format": "date"})", "\"no date\"", notes));
  EXPECT_THAT(Refusal(R"({"format": "regex"})"),
              testing::HasSubstr("format is not supported at #/format"));
}

}  // namespace
}  // namespace deepinfer::grammar
