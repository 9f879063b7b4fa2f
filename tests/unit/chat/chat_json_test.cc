#include "chat/chat_json.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace deepinfer {
namespace {

std::string Rewrite(std::string_view text) {
  const auto value = ParseJson(text);
  return value ? WriteJson(*value) : "error: " + value.error().message;
}

// The right column is what Python's json.dumps(json.loads(left)) writes.
TEST(ChatJson, NumbersAreWrittenAsPythonWritesThem) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"0", "0"},
      {"-0", "0"},
      {"100", "100"},
      {"12345678901234567890123", "12345678901234567890123"},
      {"-5", "-5"},
      {"0.1", "0.1"},
      {"1.0", "1.0"},
      {"-0.0", "-0.0"},
      {"1e2", "100.0"},
      {"1E-7", "1e-07"},
      {"1e16", "1e+16"},
      {"1e15", "1000000000000000.0"},
      {"123456789012345.6", "123456789012345.6"},
      {"1234567890123456.7", "1234567890123456.8"},
      {"9007199254740993.0", "9007199254740992.0"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"1.5e-5", "1.5e-05"},
      {"5e-324", "5e-324"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"2.2250738585072014e-308", "2.2250738585072014e-308"},
      {"1e-400", "0.0"},
      {"-1e-400", "-0.0"},
      {"123e-2", "1.23"},
      {"1e22", "1e+22"},
      {"0e5", "0.0"},
      {"3.14159265358979323846", "3.141592653589793"},
      {"1e+2", "100.0"},
      {"99999999999999990.0", "9.999999999999998e+16"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Rewrite(text), expected) << text;
}

TEST(ChatJson, NumbersBeyondDoubleKeepTheirText) {
  EXPECT_EQ(Rewrite("1e400"), "1e400");
  EXPECT_EQ(Rewrite("-1e400"), "-1e400");
  const std::string digits(5000, '7');
  EXPECT_EQ(Rewrite(digits), digits);
}

TEST(ChatJson, KeyOrderAndDefaultSeparators) {
  EXPECT_EQ(Rewrite(R"( {"b":[1,2 , {}],"a":{"z":null,"y":true , "x":false},"":[]} )"),
            R"({"b": [1, 2, {}], "a": {"z": null, "y": true, "x": false}, "": []})");
}

TEST(ChatJson, ADuplicateKeyKeepsTheFirstPlaceAndTheLastValue) {
  EXPECT_EQ(Rewrite(R"({"a": 1, "b": 2, "a": [3], "b": 4})"), R"({"a": [3], "b": 4})");
}

TEST(ChatJson, EscapesAreResolvedAndOnlyControlsWrittenAgain) {
  EXPECT_EQ(Rewrite(R"("\u0041\u00e9\u65e5\ud83d\ude00\/\"\\\b\f\n\r\t\u0000\u001f\u007f")"),
            "\"Aé日😀/\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\"");
}

TEST(ChatJson, RefusesWhatIsNoJson) {
  const std::vector<std::string> bad = {"",
                                        "{",
                                        "[1,]",
                                        "{\"a\":1,}",
                                        "{\"a\"}",
                                        "{a:1}",
                                        "NaN",
                                        "Infinity",
                                        "-Infinity",
                                        "-",
                                        "01",
                                        "1.",
                                        ".5",
                                        "1e",
                                        "1e+",
                                        "+1",
                                        "0x10",
                                        "tru",
                                        "True",
                                        "'a'",
                                        "\"a",
                                        "\"\\x\"",
                                        "\"\\u12g4\"",
                                        "\"\\u12",
                                        "\"a\nb\"",
                                        "1 2",
                                        "[1 2]",
                                        "{\"a\" 1}",
                                        "nullx",
                                        "\"\\ud83d\"",
                                        "\"\\udc00\"",
                                        "\"\xff\"",
                                        "\"\xc3\"",
                                        "\"\xed\xa0\x80\"",
                                        "\"\xc0\xaf\"",
                                        "\xef\xbb\xbf{}",
                                        "\"\xf4\x90\x80\x80\"",
                                        "// c\n1",
                                        "\"\\ud83dx\"",
                                        "\"\\ud83d\\u0041\""};
  for (const std::string& text : bad) {
    EXPECT_FALSE(ParseJson(text)) << text;
  }
}

TEST(ChatJson, ErrorsNameTheByte) {
  EXPECT_EQ(ParseJson("[1, x]").error().message, "not a JSON value at byte 4");
  EXPECT_EQ(ParseJson("\"ab\xff\"").error().message, "invalid UTF-8 at byte 3");
}

TEST(ChatJson, DeepNestingIsAnErrorNotAStackOverflow) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth)));
  EXPECT_FALSE(ParseJson(nested(kMaxJsonDepth + 1)));
  EXPECT_FALSE(ParseJson(std::string(1 << 20, '[')));
  std::string objects;
  for (int i = 0; i < 200000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(ParseJson(objects));
  EXPECT_EQ(CheckJson(nested(kMaxJsonDepth - 1), 1), "");
  EXPECT_NE(CheckJson(nested(kMaxJsonDepth), 1), "");
}

// Quadratic handling of keys would take minutes here.
TEST(ChatJson, ManyKeysAreLinear) {
  std::string text = "{";
  for (int i = 0; i < 100000; ++i) text += fmt::format("\"k{}\":{},", i, i);
  text += "\"k0\":1}";
  const auto value = ParseJson(text);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->members.size(), 100000u);
  EXPECT_EQ(value->members[0].second.text, "1");
}

TEST(ChatJson, CheckJsonTakesHalfSurrogatePairs) {
  EXPECT_EQ(CheckJson(R"("\ud83d")"), "");
  EXPECT_EQ(CheckJson(" [1] "), "");
  EXPECT_NE(CheckJson(""), "");
  EXPECT_NE(CheckJson("  "), "");
  EXPECT_NE(CheckJson("{oops"), "");
}

}  // namespace
}  // namespace deepinfer
