#include "engine/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view json, const RequestDefaults& defaults = {}) {
  const auto request = ParseRequest(json, defaults);
  return request ? "no error" : request.error().message;
}

std::string PromptOf(std::string_view json, const RequestDefaults& defaults = {}) {
  const auto request = ParseRequest(json, defaults);
  if (!request) return request.error().message;
  const auto encoded = EncodePrompt(std::get<ChatRequest>(request->prompt));
  return encoded ? encoded->Text() : encoded.error().message;
}

TEST(Request, APromptIsOneUserMessage) {
  EXPECT_EQ(PromptOf(R"({"prompt": "Hi"})"),
            "<｜begin▁of▁sentence｜><｜User｜>Hi<｜Assistant｜></think>");
  EXPECT_EQ(PromptOf(R"({"prompt": "Hi", "messages": null})"), PromptOf(R"({"prompt": "Hi"})"));
}

TEST(Request, DefaultsFillWhatTheRequestLeavesOut) {
  RequestDefaults defaults;
  defaults.system = "Be brief.";
  defaults.sampling = {0.5, 0.9, 4, 0.1, 11};
  defaults.sampling.max_tokens = 9;
  EXPECT_THAT(PromptOf(R"({"prompt": "Hi"})", defaults),
              HasSubstr("<｜System｜>Be brief.<｜User｜>Hi"));
  // A system message of the request's own wins.
  EXPECT_THAT(PromptOf(R"({"messages": [{"role": "system", "content": "S"},
                                        {"role": "user", "content": "U"}]})",
                       defaults),
              HasSubstr("<｜System｜>S<｜User｜>U"));
  const auto request = ParseRequest(R"({"prompt": "Hi", "top_k": 7, "seed": 3})", defaults);
  ASSERT_TRUE(request);
  SamplingParams want{0.5, 0.9, 7, 0.1, 3};
  want.max_tokens = 9;
  EXPECT_EQ(request->sampling, want);
}

TEST(Request, AKeyThatStandsTwiceIsAnErrorInTheRequestItself) {
  EXPECT_EQ(ErrorOf(R"({"prompt": "a", "top_k": 1, "prompt": "b"})"),
            "the key \"prompt\" stands twice in the request");
  EXPECT_EQ(ErrorOf(R"({"prompt": "a", "seed": null, "seed": 1})"),
            "the key \"seed\" stands twice in the request");
  EXPECT_EQ(ErrorOf(R"({"messages": [{"role": "user", "content": "a"},
                                     {"role": "assistant", "content": "b"},
                                     {"role": "user", "content": "c"}]})"),
            "no error");
}

TEST(Request, IntegersHaveTheRangeOfTheOptions) {
  EXPECT_EQ(ErrorOf(R"({"prompt": "a", "max_tokens": 1048576, "top_k": 1048576})"), "no error");
  EXPECT_EQ(ErrorOf(R"({"prompt": "a", "max_tokens": 1048577})"),
            "max_tokens 1048577 is not an integer from 1 to 1048576");
  EXPECT_EQ(ErrorOf(R"({"prompt": "a", "top_k": 18446744073709551615})"),
            "top_k 18446744073709551615 is not an integer from 0 to 1048576");
  EXPECT_EQ(ErrorOf(R"({"prompt": "a", "seed": 9223372036854775808})"),
            "seed 9223372036854775808 is not an integer from 0 to 9223372036854775807");
}

TEST(Request, ModesAndIdsAreRead) {
  const auto raw = ParseRequest(R"({"prompt": "x", "mode": "raw"})", {});
  ASSERT_TRUE(raw);
  EXPECT_EQ(std::get<RawText>(raw->prompt).text, "x");
  const auto ids = ParseRequest(R"({"prompt": [0, 5, 77]})", {});
  ASSERT_TRUE(ids);
  EXPECT_EQ(std::get<std::vector<int32_t>>(ids->prompt), (std::vector<int32_t>{0, 5, 77}));
  EXPECT_THAT(PromptOf(R"({"prompt": "x", "mode": "thinking", "reasoning_effort": 12})"),
              HasSubstr("Reasoning Effort: 12 "));
}

TEST(Request, NumbersInSchemasKeepTheirDigitsBesideAPrompt) {
  EXPECT_THAT(
      PromptOf(R"({"response_format": {"b": 12345678901234567890123, "a": 1}, "prompt": "x"})"),
      HasSubstr(R"({"b": 12345678901234567890123, "a": 1})"));
}

TEST(Request, BadLinesAreNamed) {
  EXPECT_THAT(ErrorOf("{\"prompt\": "), HasSubstr("no JSON"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf("{\"prompt\": \"a\xFF\"}"), HasSubstr("offset 13"));
  EXPECT_THAT(ErrorOf(R"({"prompt": ""})"), HasSubstr("prompt is empty"));
  EXPECT_THAT(ErrorOf(R"({})"), HasSubstr("neither"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "x", "messages": []})"), HasSubstr("both"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "x", "temprature": 1})"), HasSubstr("temprature"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "x", "temperature": -1})"), HasSubstr("temperature -1"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "x", "temperature": "hot"})"), HasSubstr("\"hot\""));
  EXPECT_THAT(ErrorOf(R"({"prompt": "x", "max_tokens": 0})"), HasSubstr("max_tokens 0"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "x", "max_tokens": 1.5})"), HasSubstr("max_tokens 1.5"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "x", "seed": 99999999999999999999})"), HasSubstr("seed"));
  EXPECT_THAT(ErrorOf(R"({"prompt": [1, -1]})"), HasSubstr("prompt[1]: -1"));
  EXPECT_THAT(ErrorOf(R"({"prompt": [4294967296]})"), HasSubstr("4294967296"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "x", "mode": "fast"})"), HasSubstr("fast"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "x", "id": [1]})"), HasSubstr("id [1]"));
  EXPECT_THAT(ErrorOf(R"({"messages": [{"role": "user", "content": "x"}], "mode": "raw"})"),
              HasSubstr("raw"));
  for (const char* effort : {"0", "101", "\"huge\""}) {
    EXPECT_THAT(ErrorOf(fmt::format(R"({{"prompt": "x", "reasoning_effort": {}}})", effort)),
                HasSubstr("invalid_reasoning_effort"))
        << effort;
  }
}

TEST(Request, AToolResultNobodyCalledForNamesTheId) {
  EXPECT_THAT(PromptOf(R"({"messages": [{"role": "user", "content": "x"},
      {"role": "assistant", "content": "y"},
      {"role": "tool", "tool_call_id": "call_9", "content": "z"}]})"),
              HasSubstr("call_9"));
}

TEST(Request, TheIdComesBackInResponsesAndErrors) {
  EXPECT_EQ(RequestId(R"({"id": "a\"b", "bad": 1})"), R"("a\"b")");
  EXPECT_EQ(RequestId(R"({"id": 12})"), "12");
  EXPECT_EQ(RequestId("{"), "");
  EXPECT_EQ(ErrorJson("12", 3, {ErrorCode::kInvalidArgument, "no \"x\""}),
            R"({"id":12,"line":3,"error":{"message":"no \"x\""}})");
  EXPECT_EQ(ErrorJson("", 1, {ErrorCode::kInvalidArgument, "m"}),
            R"({"line":1,"error":{"message":"m"}})");
}

TEST(Request, AResponseHoldsEveryPartOfTheAnswer) {
  auto request = ParseRequest(R"({"id": 7, "prompt": "x"})", {});
  ASSERT_TRUE(request);
  Completion completion;
  completion.output.content = "text\n";
  completion.output.reasoning = "why";
  completion.output.tool_calls = {{"f", "{\"a\": 1}"}};
  completion.usage.prompt_tokens = 5;
  completion.usage.completion_tokens = 3;
  EXPECT_EQ(ResponseJson(*request, completion),
            R"({"id":7,"text":"text\n","reasoning":"why","tool_calls":[{"id":"call_1",)"
            R"("type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}],)"
            R"("finish_reason":"tool_calls","usage":{"prompt_tokens":5,"completion_tokens":3,)"
            R"("total_tokens":8}})");
  completion.output.tool_calls.clear();
  completion.output.error = OutputError{OutputErrorKind::kInvalidJson, "invalid_json: x"};
  EXPECT_THAT(ResponseJson(*request, completion),
              HasSubstr(R"("finish_reason":"error","error":{"code":"invalid_json")"));
}

TEST(ParseRequest, NestingBeyondTheLimitIsAnErrorAtAnyDepth) {
  for (const size_t depth : {size_t{300}, size_t{100000}}) {
    const std::string open(depth, '['), close(depth, ']');
    for (const std::string& text : {open + close, "{\"prompt\":" + open + close + "}"}) {
      const auto request = ParseRequest(text, {});
      ASSERT_FALSE(request);
      EXPECT_NE(request.error().message.find("nests deeper than the 256 levels"), std::string::npos)
          << request.error().message;
      EXPECT_EQ(RequestId(text), "");
    }
  }
}

}  // namespace
}  // namespace deepinfer
