#include <string>
#include <vector>

#include "chat/encode.h"
#include "chat/output_parser.h"
#include "chat/tokens.h"
#include "tests/golden/chat/golden_cases.h"

namespace deepinfer {
namespace {

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string OutputBytes(const JsonValue& golden) {
  const JsonValue* hex = golden.Find("bytes_hex");
  return hex == nullptr ? Member(golden, "text") : FromHex(hex->text);
}

StartState Start(const JsonValue& golden) {
  const std::string state = Member(golden, "start_state");
  if (state == "reasoning") return StartState::kReasoning;
  if (state == "answer-continued") return StartState::kAnswerContinued;
  EXPECT_EQ(state, "answer");
  return StartState::kAnswer;
}

void CheckOutput(const ParsedOutput& output, const JsonValue& expected) {
  EXPECT_EQ(output.reasoning, Member(expected, "reasoning"));
  EXPECT_EQ(output.content, Member(expected, "content"));
  std::vector<ParsedToolCall> calls;
  for (const JsonValue& call : expected.Find("tool_calls")->items) {
    calls.push_back({Member(call, "name"), Member(call, "arguments")});
  }
  EXPECT_EQ(output.tool_calls, calls);
  EXPECT_EQ(output.error ? OutputErrorKindName(output.error->kind) : "", Member(expected, "error"));
  if (output.error) {
    EXPECT_EQ(output.error->message.find(Member(expected, "error") + ": "), 0u);
  } else {
    EXPECT_FALSE(output.open_call);
  }
}

// Runs every case and checks it as `run` parses it.
template <typename Run>
void CheckCases(Run run) {
  const std::vector<JsonValue> cases = ReadGoldenCases("parse.jsonl");
  ASSERT_EQ(cases.size(), 218u);
  for (const JsonValue& golden : cases) {
    SCOPED_TRACE(Member(golden, "id"));
    run(golden, OutputBytes(golden), Start(golden));
  }
}

TEST(ParseGolden, WholeOutput) {
  CheckCases([](const JsonValue& golden, const std::string& bytes, StartState start) {
    CheckOutput(ParseOutput(bytes, start), *golden.Find("expected"));
  });
}

TEST(ParseGolden, EverySplitIntoTwo) {
  CheckCases([](const JsonValue& golden, const std::string& bytes, StartState start) {
    for (size_t split = 1; split < bytes.size(); ++split) {
      SCOPED_TRACE(split);
      OutputParser parser(start);
      ParsedOutput output;
      output.Add(parser.Push(std::string_view(bytes).substr(0, split)));
      output.Add(parser.Push(std::string_view(bytes).substr(split)));
      output.Add(parser.Finish());
      CheckOutput(output, *golden.Find("expected"));
    }
  });
}

TEST(ParseGolden, ByteByByte) {
  CheckCases([](const JsonValue& golden, const std::string& bytes, StartState start) {
    OutputParser parser(start);
    ParsedOutput output;
    for (const char byte : bytes) output.Add(parser.Push({&byte, 1}));
    output.Add(parser.Finish());
    CheckOutput(output, *golden.Find("expected"));
  });
}

// What the model would have written for an answer: the prompt with it, less the prompt without it.
std::string RenderAnswer(const JsonValue& expected, StartState start) {
  ChatRequest request;
  if (start == StartState::kReasoning) request.options.thinking_mode = ThinkingMode::kThinking;
  request.messages.push_back(ChatMessage::Text(Role::kUser, "q"));
  const std::string before = EncodePrompt(request)->Text();
  ChatMessage answer = ChatMessage::Text(Role::kAssistant, Member(expected, "content"));
  answer.reasoning = Member(expected, "reasoning");
  for (const JsonValue& call : expected.Find("tool_calls")->items) {
    answer.tool_calls.push_back(
        {std::nullopt, Member(call, "name"), Member(call, "arguments"), false});
  }
  request.messages.push_back(std::move(answer));
  return EncodePrompt(request)->Text().substr(before.size());
}

TEST(ParseGolden, RenderingACanonicalAnswerGivesItsTextAgain) {
  size_t num_canonical = 0;
  CheckCases([&](const JsonValue& golden, std::string bytes, StartState start) {
    const JsonValue* canonical = golden.Find("canonical");
    if (canonical == nullptr || !canonical->is(JsonValue::Kind::kTrue)) return;
    ++num_canonical;
    if (!bytes.ends_with(kEosToken)) bytes += kEosToken;
    EXPECT_EQ(RenderAnswer(*golden.Find("expected"), start), bytes);
  });
  EXPECT_EQ(num_canonical, 67u);
}

}  // namespace
}  // namespace deepinfer
