// Tools and tool calls of a request in the OpenAI form. Internal to src/chat.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "chat/chat_json.h"
#include "chat/message.h"

namespace deepinfer {

// `path` is where the value stands in the request, for messages. Null is an empty list.
Result<std::vector<ToolDefinition>> ParseToolList(const JsonValue& list, const std::string& path);
Result<std::vector<ToolCall>> ParseToolCallList(const JsonValue& list, const std::string& path);

}  // namespace deepinfer
