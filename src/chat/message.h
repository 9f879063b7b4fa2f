// A chat request: messages and options, read from the OpenAI form or filled in by the caller.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace deepinfer {

enum class Role { kSystem, kUser, kAssistant, kTool, kLatestReminder };
enum class ThinkingMode { kChat, kThinking };
enum class Task { kAction, kQuery, kAuthority, kDomain, kTitle, kReadUrl };

// Where an image comes from; exactly one field is non-empty.
struct ImageRecord {
  std::string url;          // as given, "data:" URLs included
  std::string source_json;  // the source object of an {"type": "image"} block, as JSON text
  friend bool operator==(const ImageRecord&, const ImageRecord&) = default;
};

struct ContentBlock {
  enum class Kind {
    kText,
    kImage,
    kToolResult,   // a tool's result as a block of a user message
    kUnsupported,  // text holds the type's name; left out of tool messages, named elsewhere
  };
  Kind kind = Kind::kText;
  std::string text;
  ImageRecord image;
  std::optional<std::string> tool_call_id;  // kToolResult
  std::vector<ContentBlock> result;         // kToolResult: its content, without further results
};

struct ToolCall {
  std::optional<std::string> id;
  std::string name;       // "namespace::name" where it has a namespace
  std::string arguments;  // JSON text
  // False: `arguments` is a string of the request, possibly encoded twice or no JSON at all.
  // True: the request gave a JSON value that is no string.
  bool arguments_are_value = false;
};

struct ToolDefinition {
  std::string name;           // "namespace::name" where it has a namespace
  std::string function_json;  // the function object as the prompt shows it, on one line
};

struct ChatMessage {
  Role role = Role::kUser;
  std::vector<ContentBlock> content;
  std::string reasoning;                    // assistant
  std::vector<ToolCall> tool_calls;         // assistant
  std::optional<std::string> tool_call_id;  // tool
  std::vector<ToolDefinition> tools;        // rendered on system messages only
  std::string response_format;              // JSON text; empty: none
  std::optional<Task> task;
  bool wo_eos = false;  // assistant: the turn stays open, the output continues it

  // A message of one text.
  static ChatMessage Text(Role role, std::string_view text);
};

// What a request may leave to the caller.
struct ChatOptions {
  ThinkingMode thinking_mode = ThinkingMode::kChat;
  int reasoning_effort = 75;  // 1..100
  bool drop_thinking = true;  // leave out reasoning of turns before the last user turn
  bool add_default_bos = true;
};

struct ChatRequest {
  std::vector<ChatMessage> messages;
  // Of the request as a whole: these go to the first message if that is a system message, else to
  // an empty system message put before it.
  std::vector<ToolDefinition> tools;
  std::string response_format;  // JSON text; empty: none
  ChatOptions options;
};

// Reads {"messages": [...], ...}. Beside it the keys tools, response_format, thinking_mode (or
// mode), reasoning_effort, drop_thinking and add_default_bos are read, null meaning absent; other
// keys are ignored. What the request does not say is taken from `defaults`.
// Errors have a ChatErrorKind (chat/chat_error.h).
Result<ChatRequest> ParseChatRequest(std::string_view json, const ChatOptions& defaults = {});

// Reads a JSON list of tools in the OpenAI form.
Result<std::vector<ToolDefinition>> ParseTools(std::string_view json);

// "low", "high", "xhigh", "max" or a decimal integer 1..100 without sign or blanks; empty for
// anything else. (In a request only numbers may be numbers: there "75" is an error.)
std::optional<int> ParseEffort(std::string_view text);

}  // namespace deepinfer
