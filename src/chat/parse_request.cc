#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "chat/chat_error.h"
#include "chat/chat_json.h"
#include "chat/message.h"
#include "chat/parse_tools.h"

namespace deepinfer {
namespace {

using Kind = JsonValue::Kind;

constexpr std::array<std::pair<std::string_view, Role>, 6> kRoles = {{
    {"system", Role::kSystem},
    {"developer", Role::kSystem},
    {"user", Role::kUser},
    {"assistant", Role::kAssistant},
    {"tool", Role::kTool},
    {"latest_reminder", Role::kLatestReminder},
}};

constexpr std::array<std::pair<std::string_view, Task>, 6> kTasks = {{
    {"action", Task::kAction},
    {"query", Task::kQuery},
    {"authority", Task::kAuthority},
    {"domain", Task::kDomain},
    {"title", Task::kTitle},
    {"read_url", Task::kReadUrl},
}};

constexpr std::array<std::pair<std::string_view, ThinkingMode>, 2> kThinkingModes = {{
    {"chat", ThinkingMode::kChat},
    {"thinking", ThinkingMode::kThinking},
}};

constexpr std::array<std::pair<std::string_view, int>, 4> kEfforts = {{
    {"low", 50},
    {"high", 75},
    {"xhigh", 75},
    {"max", 100},
}};

constexpr std::string_view kEffortRange =
    "allowed are the integers 1 to 100, low (50), high (75), xhigh (75) and max (100)";

template <typename Table>
auto FindWord(const Table& table, std::string_view word)
    -> std::optional<typename Table::value_type::second_type> {
  for (const auto& [name, value] : table) {
    if (name == word) return value;
  }
  return std::nullopt;
}

template <typename Table>
std::string Words(const Table& table) {
  std::string words;
  for (const auto& [name, value] : table) words += (words.empty() ? "" : ", ") + std::string(name);
  return words;
}

// Decimal digits only, as a number 1..100.
std::optional<int> EffortNumber(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (digits.front() == '0' || number < 1 || number > 100) return std::nullopt;
  return number;
}

// The member's value, null where it is absent.
const JsonValue& Get(const JsonValue& object, std::string_view key) {
  static const JsonValue kNull;
  const JsonValue* value = object.Find(key);
  return value == nullptr ? kNull : *value;
}

// A word of `table`, absent where the value is null.
template <typename Table>
auto ParseWord(const JsonValue& value, const Table& table, ChatErrorKind kind,
               const std::string& path)
    -> Result<std::optional<typename Table::value_type::second_type>> {
  using Word = std::optional<typename Table::value_type::second_type>;
  if (value.is(Kind::kNull)) return Word();
  const Word word = value.is(Kind::kString) ? FindWord(table, value.text) : Word();
  if (!word) {
    return MakeChatError(
        kind, fmt::format("{} is {}; allowed are {}", path, WriteJson(value), Words(table)));
  }
  return word;
}

Result<std::string> ParseText(const JsonValue& value, const std::string& path) {
  if (value.is(Kind::kNull)) return std::string();
  if (value.is(Kind::kString)) return value.text;
  return MakeChatError(ChatErrorKind::kInvalidContent, path + " is no string");
}

// The id of the call that a tool result answers.
Result<std::optional<std::string>> ParseCallId(const JsonValue& value, const std::string& path) {
  if (value.is(Kind::kNull)) return std::optional<std::string>();
  if (value.is(Kind::kString)) return std::optional<std::string>(value.text);
  return MakeChatError(ChatErrorKind::kUnrequestedToolResult,
                       fmt::format("{} is {}, which is no string", path, WriteJson(value)));
}

Result<bool> ParseFlag(const JsonValue& value, const std::string& path, bool otherwise) {
  if (value.is(Kind::kNull)) return otherwise;
  if (value.is(Kind::kTrue)) return true;
  if (value.is(Kind::kFalse)) return false;
  return MakeChatError(ChatErrorKind::kInvalidRequest,
                       fmt::format("{} is {}; allowed are true and false", path, WriteJson(value)));
}

// The schema to show, as JSON text; empty for null and {}.
Result<std::string> ParseResponseFormat(const JsonValue& value, const std::string& path) {
  if (value.is(Kind::kNull)) return std::string();
  if (!value.is(Kind::kObject)) {
    return MakeChatError(ChatErrorKind::kInvalidRequest, path + " is no object");
  }
  return value.members.empty() ? std::string() : WriteJson(value);
}

Result<ImageRecord> ParseImage(const JsonValue& block, bool is_url_block, const std::string& path) {
  const JsonValue* url = &Get(block, is_url_block ? "image_url" : "url");
  if (is_url_block && url->is(Kind::kObject)) url = &Get(*url, "url");
  ImageRecord image;
  if (url->is(Kind::kString)) image.url = url->text;
  const JsonValue& source = Get(block, "source");
  if (image.url.empty() && !is_url_block && source.is(Kind::kObject) && !source.members.empty()) {
    image.source_json = WriteJson(source);
  }
  if (image == ImageRecord()) {
    return MakeChatError(ChatErrorKind::kInvalidImage, path + " has no image URL and no source");
  }
  return image;
}

Result<std::vector<ContentBlock>> ParseContent(const JsonValue& content, const std::string& path,
                                               bool results_allowed);

Result<ContentBlock> ParseBlock(const JsonValue& value, const std::string& path,
                                bool results_allowed) {
  if (!value.is(Kind::kObject)) {
    return MakeChatError(ChatErrorKind::kInvalidContent, path + " is no object");
  }
  const JsonValue& type = Get(value, "type");
  if (!type.is(Kind::kString)) {
    return MakeChatError(ChatErrorKind::kInvalidContent, path + ".type is missing");
  }
  ContentBlock block;
  if (type.text == "text") {
    DI_ASSIGN_OR_RETURN(block.text, ParseText(Get(value, "text"), path + ".text"));
  } else if (type.text == "image_url" || type.text == "image") {
    block.kind = ContentBlock::Kind::kImage;
    DI_ASSIGN_OR_RETURN(block.image, ParseImage(value, type.text == "image_url", path));
  } else if (type.text == "tool_result" && results_allowed) {
    block.kind = ContentBlock::Kind::kToolResult;
    DI_ASSIGN_OR_RETURN(block.tool_call_id,
                        ParseCallId(Get(value, "tool_use_id"), path + ".tool_use_id"));
    DI_ASSIGN_OR_RETURN(block.result, ParseContent(Get(value, "content"), path + ".content",
                                                   /*results_allowed=*/false));
  } else {
    block.kind = ContentBlock::Kind::kUnsupported;
    block.text = type.text;
  }
  return block;
}

Result<std::vector<ContentBlock>> ParseContent(const JsonValue& content, const std::string& path,
                                               bool results_allowed) {
  std::vector<ContentBlock> blocks;
  if (!content.is(Kind::kArray)) {
    if (!content.is(Kind::kNull) && !content.is(Kind::kString)) {
      return MakeChatError(ChatErrorKind::kInvalidContent,
                           path + " is neither a string nor a list of blocks nor null");
    }
    blocks.emplace_back().text = content.text;
    return blocks;
  }
  for (size_t i = 0; i < content.items.size(); ++i) {
    DI_ASSIGN_OR_RETURN(
        ContentBlock block,
        ParseBlock(content.items[i], fmt::format("{}[{}]", path, i), results_allowed));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Result<Role> ParseRole(const JsonValue& value, const std::string& path) {
  if (value.is(Kind::kNull)) {
    return MakeChatError(ChatErrorKind::kUnknownRole,
                         fmt::format("{} is null or missing; allowed are {}", path, Words(kRoles)));
  }
  DI_ASSIGN_OR_RETURN(const std::optional<Role> role,
                      ParseWord(value, kRoles, ChatErrorKind::kUnknownRole, path));
  return *role;
}

Status ParseAssistantFields(const JsonValue& value, const std::string& path, ChatMessage& message) {
  DI_ASSIGN_OR_RETURN(message.reasoning,
                      ParseText(Get(value, "reasoning_content"), path + ".reasoning_content"));
  DI_ASSIGN_OR_RETURN(message.tool_calls,
                      ParseToolCallList(Get(value, "tool_calls"), path + ".tool_calls"));
  DI_ASSIGN_OR_RETURN(const bool wo_eos, ParseFlag(Get(value, "wo_eos"), path + ".wo_eos", false));
  DI_ASSIGN_OR_RETURN(const bool prefix, ParseFlag(Get(value, "prefix"), path + ".prefix", false));
  message.wo_eos = wo_eos || prefix;
  return {};
}

Result<ChatMessage> ParseMessage(const JsonValue& value, const std::string& path) {
  if (!value.is(Kind::kObject)) {
    return MakeChatError(ChatErrorKind::kInvalidRequest, path + " is no object");
  }
  ChatMessage message;
  DI_ASSIGN_OR_RETURN(message.role, ParseRole(Get(value, "role"), path + ".role"));
  DI_ASSIGN_OR_RETURN(message.content, ParseContent(Get(value, "content"), path + ".content",
                                                    message.role == Role::kUser));
  DI_ASSIGN_OR_RETURN(message.tools, ParseToolList(Get(value, "tools"), path + ".tools"));
  DI_ASSIGN_OR_RETURN(message.response_format, ParseResponseFormat(Get(value, "response_format"),
                                                                   path + ".response_format"));
  DI_ASSIGN_OR_RETURN(message.task, ParseWord(Get(value, "task"), kTasks,
                                              ChatErrorKind::kInvalidTask, path + ".task"));
  if (message.role == Role::kAssistant) {
    DI_RETURN_IF_ERROR(ParseAssistantFields(value, path, message));
  }
  if (message.role == Role::kTool) {
    DI_ASSIGN_OR_RETURN(message.tool_call_id,
                        ParseCallId(Get(value, "tool_call_id"), path + ".tool_call_id"));
  }
  return message;
}

Result<int> ParseEffortValue(const JsonValue& value, int otherwise) {
  if (value.is(Kind::kNull)) return otherwise;
  std::optional<int> effort;
  if (value.is(Kind::kNumber)) effort = EffortNumber(value.text);
  if (value.is(Kind::kString)) effort = FindWord(kEfforts, value.text);
  if (!effort) {
    const std::string given = value.is(Kind::kNumber) ? value.text : WriteJson(value);
    return MakeChatError(ChatErrorKind::kInvalidReasoningEffort,
                         fmt::format("reasoning_effort is {}; {}", given, kEffortRange));
  }
  return *effort;
}

Status ParseOptions(const JsonValue& request, ChatOptions& options) {
  for (const std::string key : {"mode", "thinking_mode"}) {
    DI_ASSIGN_OR_RETURN(
        const std::optional<ThinkingMode> mode,
        ParseWord(Get(request, key), kThinkingModes, ChatErrorKind::kInvalidThinkingMode, key));
    options.thinking_mode = mode.value_or(options.thinking_mode);
  }
  DI_ASSIGN_OR_RETURN(options.reasoning_effort,
                      ParseEffortValue(Get(request, "reasoning_effort"), options.reasoning_effort));
  DI_ASSIGN_OR_RETURN(options.drop_thinking, ParseFlag(Get(request, "drop_thinking"),
                                                       "drop_thinking", options.drop_thinking));
  DI_ASSIGN_OR_RETURN(
      options.add_default_bos,
      ParseFlag(Get(request, "add_default_bos"), "add_default_bos", options.add_default_bos));
  return {};
}

}  // namespace

ChatMessage ChatMessage::Text(Role role, std::string_view text) {
  ChatMessage message;
  message.role = role;
  message.content.emplace_back().text = text;
  return message;
}

std::optional<int> ParseEffort(std::string_view text) {
  if (const auto effort = FindWord(kEfforts, text)) return effort;
  return EffortNumber(text);
}

Result<ChatRequest> ParseChatRequest(std::string_view json, const ChatOptions& defaults) {
  const auto value = ParseJson(json);
  if (!value) return MakeChatError(ChatErrorKind::kInvalidJson, value.error().message);
  if (!value->is(Kind::kObject)) {
    return MakeChatError(ChatErrorKind::kInvalidRequest, "the request is no JSON object");
  }
  ChatRequest request;
  request.options = defaults;
  DI_RETURN_IF_ERROR(ParseOptions(*value, request.options));
  DI_ASSIGN_OR_RETURN(request.tools, ParseToolList(Get(*value, "tools"), "tools"));
  DI_ASSIGN_OR_RETURN(request.response_format,
                      ParseResponseFormat(Get(*value, "response_format"), "response_format"));
  const JsonValue& messages = Get(*value, "messages");
  if (!messages.is(Kind::kArray)) {
    return MakeChatError(ChatErrorKind::kInvalidRequest, "messages is missing or no list");
  }
  for (size_t i = 0; i < messages.items.size(); ++i) {
    DI_ASSIGN_OR_RETURN(ChatMessage message,
                        ParseMessage(messages.items[i], fmt::format("messages[{}]", i)));
    request.messages.push_back(std::move(message));
  }
  return request;
}

}  // namespace deepinfer
