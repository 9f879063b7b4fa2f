#include "config/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(std::string_view text) {
  const auto parsed = ParseStrictJson(text, "file");
  if (parsed) return "parsed";
  EXPECT_EQ(parsed.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(parsed.error().message, HasSubstr("file is not valid JSON: "));
  return parsed.error().message;
}

TEST(StrictJson, BuildsTheSameDocumentAsThePlainParser) {
  for (std::string_view text :
       {R"({"a": [1, -2, 3.5, true, false, null, "x\u00e9"], "b": {"c": {}, "d": [[], {}]}})", "[]",
        "17", "\"s\"", "null", " {\"a\":\t1}\n", "[[1,[2,[3]]],{\"k\":[{\"k\":1}]}]",
        "18446744073709551615", "-9223372036854775808"}) {
    const auto parsed = ParseStrictJson(text, "file");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, json::parse(text)) << text;
  }
}

TEST(StrictJson, DuplicateKeysAreRefusedAndNamed) {
  EXPECT_THAT(ErrorOf(R"({"a": 1, "b": 2, "a": 3})"), HasSubstr("duplicate key \"a\""));
  EXPECT_THAT(ErrorOf(R"({"x": {"k": 1, "\u006b": 1}})"), HasSubstr("duplicate key \"k\""));
  EXPECT_TRUE(ParseStrictJson(R"({"x": {"k": 1}, "y": {"k": 1}})", "file"));
}

TEST(StrictJson, BrokenTextNamesThePosition) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("line 1, column 1"));
  EXPECT_THAT(ErrorOf("{\"a\": 1,\n \"b\" 2}"), HasSubstr("line 2"));
  for (std::string_view text : {"{", "[1", "{\"a\":}", "[1,]", "nul", "\"open", "{} {}", "1 2",
                                "{'a': 1}", "// c\n1", "NaN", "[Infinity]", "01", "\xef\xbb"}) {
    EXPECT_NE(ErrorOf(text), "parsed") << text;
  }
}

TEST(StrictJson, NumbersBeyondADoubleAreAnErrorInsteadOfInfinity) {
  EXPECT_NE(ErrorOf("1e999"), "parsed");
  EXPECT_NE(ErrorOf("[-1e400]"), "parsed");
}

TEST(StrictJson, InvalidUtf8IsAnErrorAndStaysOutOfTheMessage) {
  for (std::string_view text : {"\"\xff\"", "{\"\xc0\xaf\": 1}", "\"\xed\xa0\x80\"", "\x80"}) {
    const std::string error = ErrorOf(text);
    EXPECT_NE(error, "parsed");
    for (unsigned char c : error) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << error;
  }
}

TEST(StrictJson, MillionsOfBracketsNeitherCrashNorParse) {
  const std::string arrays(1'000'000, '[');
  EXPECT_THAT(ErrorOf(arrays), HasSubstr("nest deeper than 64"));
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(ErrorOf(objects), HasSubstr("nest deeper than 64"));
}

TEST(StrictJson, DepthLimitIsExact) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseStrictJson(nested(kMaxJsonDepth), "file"));
  EXPECT_THAT(ErrorOf(nested(kMaxJsonDepth + 1)), HasSubstr("nest deeper"));
}

TEST(StrictJson, ShownValuesAreShortAndPrintable) {
  EXPECT_EQ(ShownJson(json{{"a", 1}}), "{\"a\":1}");
  EXPECT_EQ(ShownJson(json("\x1b[31m")), "\"\\u001b[31m\"");
  EXPECT_LE(ShownJson(json(std::string(10000, 'x'))).size(), 100u);
  EXPECT_THAT(ShownJson(json("\xff")), Not(HasSubstr("\xff")));
}

}  // namespace
}  // namespace deepinfer
