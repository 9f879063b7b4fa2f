#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "chat/chat_error.h"
#include "chat/message.h"
#include "gtest/gtest.h"

namespace deepinfer {
namespace {

constexpr std::string_view kUserOnly = R"("messages": [{"role": "user", "content": "q"}])";

// The error that a request with these fields gives.
std::string ErrorOf(const std::string& json) {
  const auto request = ParseChatRequest(json);
  return request ? "accepted" : request.error().message;
}

std::string WithUser(const std::string& fields) {
  return "{" + std::string(kUserOnly) + ", " + fields + "}";
}

TEST(ParseEffort, NamesAndIntegersOnly) {
  EXPECT_EQ(ParseEffort("low"), 50);
  EXPECT_EQ(ParseEffort("high"), 75);
  EXPECT_EQ(ParseEffort("xhigh"), 75);
  EXPECT_EQ(ParseEffort("max"), 100);
  EXPECT_EQ(ParseEffort("1"), 1);
  EXPECT_EQ(ParseEffort("75"), 75);
  EXPECT_EQ(ParseEffort("100"), 100);
  for (const std::string bad : {"", "0", "101", "huge", "HIGH", " 75", "75 ", "75.0", "-1", "+5",
                                "075", "true", "1e1", "99999999999999999999", "medium"}) {
    EXPECT_EQ(ParseEffort(bad), std::nullopt) << bad;
  }
}

TEST(ParseChatRequest, EffortErrorsNameTheValueAndTheRange) {
  for (const std::string bad : {"0", "101", "-1", "\"huge\"", "true", "75.0", "7.5e1", "\"75\"",
                                "[]", "{}", "\"\"", "99999999999999999999"}) {
    const std::string message = ErrorOf(WithUser("\"reasoning_effort\": " + bad));
    EXPECT_EQ(message.find("invalid_reasoning_effort: reasoning_effort is " + bad + "; allowed"),
              0u)
        << message;
    EXPECT_NE(message.find("1 to 100"), std::string::npos);
  }
}

TEST(ParseChatRequest, FieldsOverrideTheCallersDefaults) {
  ChatOptions defaults;
  defaults.thinking_mode = ThinkingMode::kThinking;
  defaults.reasoning_effort = 7;
  defaults.drop_thinking = false;
  const auto plain = ParseChatRequest("{" + std::string(kUserOnly) + "}", defaults);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->options.thinking_mode, ThinkingMode::kThinking);
  EXPECT_EQ(plain->options.reasoning_effort, 7);
  EXPECT_FALSE(plain->options.drop_thinking);
  const auto given =
      ParseChatRequest(WithUser(R"("mode": "chat", "reasoning_effort": "max", "drop_thinking": true,
                  "add_default_bos": false, "tools": null, "response_format": null)"),
                       defaults);
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->options.thinking_mode, ThinkingMode::kChat);
  EXPECT_EQ(given->options.reasoning_effort, 100);
  EXPECT_TRUE(given->options.drop_thinking);
  EXPECT_FALSE(given->options.add_default_bos);
}

TEST(ParseChatRequest, MalformedRequestsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "invalid_json: value missing at byte 0"},
      {"{\"messages\": [", "invalid_json: value missing at byte 14"},
      {"[]", "invalid_request: the request is no JSON object"},
      {"{}", "invalid_request: messages is missing or no list"},
      {R"({"messages": "hi"})", "invalid_request: messages is missing or no list"},
      {R"({"messages": ["hi"]})", "invalid_request: messages[0] is no object"},
      {WithUser(R"("thinking_mode": "auto")"),
       "invalid_thinking_mode: thinking_mode is \"auto\"; allowed are chat, thinking"},
      {WithUser(R"("mode": 1)"), "invalid_thinking_mode: mode is 1; allowed are chat, thinking"},
      {WithUser(R"("drop_thinking": "no")"),
       "invalid_request: drop_thinking is \"no\"; allowed are true and false"},
      {WithUser(R"("response_format": "json")"), "invalid_request: response_format is no object"},
      {WithUser(R"("tools": {})"), "invalid_tool: tools is no list"},
      {WithUser(R"("tools": [1])"), "invalid_tool: tools[0] has no function object"},
      {R"({"messages": [{"role": "assistant", "reasoning_content": 5}]})",
       "invalid_content: messages[0].reasoning_content is no string"},
      {R"({"messages": [{"role": "assistant", "tool_calls": {}}]})",
       "invalid_tool_call: messages[0].tool_calls is no list"},
      {R"({"messages": [{"role": "assistant", "tool_calls": [{"id": 5,
          "function": {"name": "f", "arguments": "{}"}}]}]})",
       "invalid_tool_call: messages[0].tool_calls[0].id 5 is no string"},
      {R"({"messages": [{"role": "tool", "tool_call_id": 5, "content": "x"}]})",
       "unrequested_tool_result: messages[0].tool_call_id is 5, which is no string"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]})",
       "invalid_content: messages[0].content[0].text is no string"},
      {R"({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a",
          "content": 4}]}]})",
       "invalid_content: messages[0].content[0].content is neither a string nor a list of blocks "
       "nor null"},
  };
  for (const auto& [json, expected] : cases) EXPECT_EQ(ErrorOf(json), expected) << json;
}

TEST(ParseChatRequest, InvalidUtf8IsAnErrorWithItsPlace) {
  EXPECT_EQ(ErrorOf("{\"messages\": [{\"role\": \"user\", \"content\": \"a\xff\"}]}"),
            "invalid_json: invalid UTF-8 at byte 44");
}

TEST(ParseChatRequest, DeepRequestsAreRefused) {
  EXPECT_EQ(ErrorOf(std::string(1 << 20, '[')).find("invalid_json: nesting deeper"), 0u);
}

TEST(ParseChatRequest, NamespaceRules) {
  const auto tool = [](const std::string& text) { return ParseTools("[" + text + "]"); };
  const auto named = tool(R"({"namespace": {"name": "fs", "description": "Files."},
                              "function": {"name": "read", "parameters": {}}})");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ((*named)[0].name, "fs::read");
  EXPECT_EQ((*named)[0].function_json,
            R"({"name": "fs::read", "parameters": {}, "description": "Files."})");
  for (const std::string bad :
       {R"({"namespace": "a", "function": {"name": "f", "namespace": "b"}})",
        R"({"namespace": 5, "function": {"name": "f"}})",
        R"({"namespace": {}, "function": {"name": "f"}})", R"({"function": {"name": "::f"}})",
        R"({"function": {"name": "f::"}})"}) {
    const auto refused = tool(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(ChatErrorKindOf(refused.error()), ChatErrorKind::kInvalidToolName) << bad;
  }
  const auto same = tool(R"({"namespace": "a", "function": {"name": "f", "namespace": "a"}})");
  ASSERT_TRUE(same);
  EXPECT_EQ((*same)[0].function_json, R"({"name": "a::f"})");
}

TEST(ParseChatRequest, PrefixIsWoEos) {
  const auto request =
      ParseChatRequest(R"({"messages": [{"role": "assistant", "content": "a", "prefix": true}]})");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->messages[0].wo_eos);
}

TEST(ChatErrorKind, OtherErrorsHaveNone) {
  EXPECT_EQ(ChatErrorKindOf(Error{ErrorCode::kIo, "no file x: y"}), std::nullopt);
  EXPECT_EQ(ChatErrorKindOf(MakeChatError(ChatErrorKind::kInvalidTask, "x").value()),
            ChatErrorKind::kInvalidTask);
}

// The evaluation items that ship with the nano model are requests as they stand.
TEST(ParseChatRequest, ReadsTheShippedEvaluationItems) {
  for (const std::string file : {"json", "tool_answer", "dialogue"}) {
    std::ifstream in(std::string(DEEPINFER_SOURCE_DIR) + "/models/nano/eval/" + file + ".jsonl");
    size_t num_items = 0;
    for (std::string line; std::getline(in, line); ++num_items) {
      const auto request = ParseChatRequest(line);
      ASSERT_TRUE(request) << request.error().message;
      EXPECT_FALSE(request->messages.empty());
    }
    EXPECT_GT(num_items, 0u) << file;
  }
}

}  // namespace
}  // namespace deepinfer
