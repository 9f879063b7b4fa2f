#include "chat/chat_error.h"

#include <array>
#include <utility>

namespace deepinfer {
namespace {

constexpr std::array<std::pair<ChatErrorKind, std::string_view>, 12> kNames = {{
    {ChatErrorKind::kInvalidJson, "invalid_json"},
    {ChatErrorKind::kInvalidRequest, "invalid_request"},
    {ChatErrorKind::kInvalidReasoningEffort, "invalid_reasoning_effort"},
    {ChatErrorKind::kInvalidThinkingMode, "invalid_thinking_mode"},
    {ChatErrorKind::kInvalidTask, "invalid_task"},
    {ChatErrorKind::kUnknownRole, "unknown_role"},
    {ChatErrorKind::kInvalidContent, "invalid_content"},
    {ChatErrorKind::kInvalidImage, "invalid_image"},
    {ChatErrorKind::kInvalidTool, "invalid_tool"},
    {ChatErrorKind::kInvalidToolCall, "invalid_tool_call"},
    {ChatErrorKind::kInvalidToolName, "invalid_tool_name"},
    {ChatErrorKind::kUnrequestedToolResult, "unrequested_tool_result"},
}};

}  // namespace

std::string_view ChatErrorKindName(ChatErrorKind kind) {
  for (const auto& [known, name] : kNames) {
    if (known == kind) return name;
  }
  return "unknown";
}

tl::unexpected<Error> MakeChatError(ChatErrorKind kind, std::string_view detail) {
  return MakeError(ErrorCode::kInvalidArgument, "{}: {}", ChatErrorKindName(kind), detail);
}

std::optional<ChatErrorKind> ChatErrorKindOf(const Error& error) {
  const std::string_view word = std::string_view(error.message).substr(0, error.message.find(':'));
  for (const auto& [kind, name] : kNames) {
    if (name == word) return kind;
  }
  return std::nullopt;
}

}  // namespace deepinfer
