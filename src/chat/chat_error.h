// The kinds of refusal of a chat request.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace deepinfer {

enum class ChatErrorKind {
  kInvalidJson,             // the request is no JSON text
  kInvalidRequest,          // the request's own fields: missing, or of the wrong type
  kInvalidReasoningEffort,  // no integer 1..100 and no known name
  kInvalidThinkingMode,
  kInvalidTask,
  kUnknownRole,
  kInvalidContent,
  kInvalidImage,
  kInvalidTool,
  kInvalidToolCall,
  kInvalidToolName,
  kUnrequestedToolResult,
};

// "invalid_reasoning_effort"
std::string_view ChatErrorKindName(ChatErrorKind kind);

// An error with ErrorCode::kInvalidArgument whose message is "<kind name>: <detail>". The detail
// names the path in the request ("messages[1].content") or the value that is wrong.
tl::unexpected<Error> MakeChatError(ChatErrorKind kind, std::string_view detail);

// The kind of an error that src/chat returned; empty for any other error.
std::optional<ChatErrorKind> ChatErrorKindOf(const Error& error);

}  // namespace deepinfer
