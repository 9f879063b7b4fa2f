#include "chat/encode.h"

#include <string>
#include <vector>

#include "chat/chat_error.h"
#include "chat/tokens.h"
#include "gtest/gtest.h"

namespace deepinfer {
namespace {

Result<EncodedPrompt> Encode(std::string_view json) {
  DI_ASSIGN_OR_RETURN(const ChatRequest request, ParseChatRequest(json));
  return EncodePrompt(request);
}

std::string PromptOf(std::string_view json) {
  const auto prompt = Encode(json);
  return prompt ? prompt->Text() : "error: " + prompt.error().message;
}

std::vector<std::string> ControlsOf(const EncodedPrompt& prompt) {
  std::vector<std::string> controls;
  for (const Segment& segment : prompt.segments) {
    if (segment.kind == Segment::Kind::kControl) controls.push_back(segment.text);
  }
  return controls;
}

// A conversation in which every field of the request is `text`.
ChatRequest EveryFieldIs(const std::string& text) {
  ChatRequest request;
  request.options.thinking_mode = ThinkingMode::kThinking;
  ChatMessage system = ChatMessage::Text(Role::kSystem, text);
  system.tools.push_back({text, "{\"name\": \"" + text + "\"}"});
  system.response_format = "{\"pattern\": \"" + text + "\"}";
  ChatMessage calls = ChatMessage::Text(Role::kAssistant, text);
  calls.reasoning = text;
  calls.tool_calls.push_back({"id", text, "{\"" + text + "\": \"" + text + "\"}", false});
  calls.tool_calls.push_back({"id2", text, text, false});
  ChatMessage result = ChatMessage::Text(Role::kTool, text);
  result.tool_call_id = "id";
  ContentBlock unsupported;
  unsupported.kind = ContentBlock::Kind::kUnsupported;
  unsupported.text = text;
  ChatMessage user = ChatMessage::Text(Role::kUser, text);
  user.content.push_back(unsupported);
  request.messages = {system, ChatMessage::Text(Role::kLatestReminder, text), user, calls, result};
  return request;
}

TEST(EncodePrompt, NoFieldOfARequestCanSpellAControlToken) {
  const auto plain = EncodePrompt(EveryFieldIs("x"));
  ASSERT_TRUE(plain);
  for (const std::string_view token : kControlTokens) {
    const auto prompt = EncodePrompt(EveryFieldIs(std::string(token)));
    ASSERT_TRUE(prompt) << token;
    EXPECT_EQ(ControlsOf(*prompt), ControlsOf(*plain)) << token;
  }
}

TEST(EncodePrompt, TextPiecesAreJoinedAndNeverEmpty) {
  const auto prompt = EncodePrompt(EveryFieldIs("x"));
  ASSERT_TRUE(prompt);
  for (size_t i = 0; i < prompt->segments.size(); ++i) {
    EXPECT_FALSE(prompt->segments[i].text.empty());
    if (i > 0 && prompt->segments[i].kind == Segment::Kind::kText) {
      EXPECT_EQ(prompt->segments[i - 1].kind, Segment::Kind::kControl);
    }
  }
}

TEST(EncodePrompt, EffortOutsideTheRangeIsRefusedInBothModes) {
  for (const int effort : {0, 101, -1}) {
    ChatRequest request;
    request.options.reasoning_effort = effort;
    const auto prompt = EncodePrompt(request);
    ASSERT_FALSE(prompt);
    EXPECT_EQ(ChatErrorKindOf(prompt.error()), ChatErrorKind::kInvalidReasoningEffort);
    EXPECT_NE(prompt.error().message.find(std::to_string(effort)), std::string::npos);
  }
}

TEST(EncodePrompt, AnUnrequestedResultNamesItsMessageAndId) {
  EXPECT_EQ(PromptOf(R"({"messages": [{"role": "user", "content": "q"},
                                      {"role": "tool", "tool_call_id": "c9", "content": "x"}],
                         "tools": [{"function": {"name": "f"}}]})"),
            "error: unrequested_tool_result: messages[1]: no call of the preceding assistant turn "
            "has the id \"c9\"");
}

// An answer without calls ends what its predecessors asked for.
TEST(EncodePrompt, OnlyThePrecedingAssistantTurnCanBeAnswered) {
  const std::string calls =
      R"({"role": "assistant", "tool_calls": [{"id": "c1",
          "function": {"name": "f", "arguments": "{}"}}]}, )";
  const std::string result = R"({"role": "tool", "tool_call_id": "c1", "content": "x"})";
  const std::string user = R"({"role": "user", "content": "q"}, )";
  const std::string system = R"({"role": "system", "content": "s"}, )";
  const std::string answer = R"({"role": "assistant", "content": "a"}, )";
  const auto accepted = [&](const std::string& between) {
    return Encode("{\"messages\": [" + user + calls + between + result + "]}").has_value();
  };
  EXPECT_TRUE(accepted(""));
  EXPECT_TRUE(accepted(user));
  EXPECT_TRUE(accepted(system));
  EXPECT_FALSE(accepted(user + answer));
  EXPECT_FALSE(accepted(user + answer + user));
}

TEST(EncodePrompt, RequestToolsFollowTheSystemMessagesOwn) {
  const std::string prompt = PromptOf(
      R"({"messages": [{"role": "system", "tools": [{"function": {"name": "a"}}]}],
          "tools": [{"function": {"name": "b"}}]})");
  EXPECT_NE(prompt.find("{\"name\": \"a\"}\n{\"name\": \"b\"}\n"), std::string::npos) << prompt;
}

TEST(EncodePrompt, TwoResponseFormatsAreAnError) {
  EXPECT_EQ(PromptOf(R"({"messages": [{"role": "system", "response_format": {"a": 1}}],
                         "response_format": {"b": 2}})"),
            "error: invalid_request: response_format stands both on the request and on "
            "messages[0]");
}

TEST(EncodePrompt, UnknownBlocksAreNamedInEveryRoleButTool) {
  for (const std::string role : {"system", "user", "assistant", "latest_reminder"}) {
    const std::string prompt =
        PromptOf(R"({"messages": [{"role": ")" + role +
                 R"(", "content": [{"type": "text", "text": "a"}, {"type": "audio"}]}]})");
    EXPECT_NE(prompt.find("a\n\n[Unsupported audio]"), std::string::npos) << prompt;
  }
}

TEST(EncodePrompt, AWordInBracesIsNoPlaceholder) {
  const std::string prompt = PromptOf(
      R"({"messages": [{"role": "system", "content": "{schemas}",
          "tools": [{"function": {"name": "{schema}", "description": "{schemas} {name} {key}"}}],
          "response_format": {"x": "{schema}"}},
         {"role": "assistant", "tool_calls": [{"function": {"name": "{name}",
          "arguments": {"{is_string}": "{key}"}}}]}]})");
  EXPECT_NE(prompt.find(R"({"name": "{schema}", "description": "{schemas} {name} {key}"})"),
            std::string::npos);
  EXPECT_NE(prompt.find(R"({"x": "{schema}"})"), std::string::npos);
  EXPECT_NE(prompt.find(R"( invoke name="{name}">)"), std::string::npos);
  EXPECT_NE(prompt.find(R"( parameter name="{is_string}" string="true">{key}</)"),
            std::string::npos);
}

TEST(EncodePrompt, AnOpenTurnOfCallsIsContinued) {
  const auto prompt = Encode(
      R"({"messages": [{"role": "user"}, {"role": "assistant", "wo_eos": true,
          "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]})");
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->start_state, StartState::kAnswerContinued);
}

}  // namespace
}  // namespace deepinfer
