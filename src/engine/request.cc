#include "engine/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "config/option_table.h"
#include "engine/text.h"

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kKeys[] = {"id",
                                      "prompt",
                                      "messages",
                                      "tools",
                                      "response_format",
                                      "mode",
                                      "reasoning_effort",
                                      "drop_thinking",
                                      "max_tokens",
                                      "temperature",
                                      "top_p",
                                      "top_k",
                                      "min_p",
                                      "seed"};

// Arrays and objects inside one another; as deep as chat requests may be.
constexpr int kMaxRequestDepth = 256;

// The value as it may stand in an error message.
std::string Shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

Result<Json> ParseObject(std::string_view text) {
  DI_RETURN_IF_ERROR(RequireUtf8(text, "the request"));
  Json json;
  bool too_deep = false;
  try {
    // The library writes values out recursively: what nests deeper never becomes one.
    json = Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
      too_deep = too_deep || depth > kMaxRequestDepth;
      return depth <= kMaxRequestDepth;
    });
  } catch (const Json::exception& e) {
    // The part before "] " is the library's own name and number.
    const std::string what = e.what();
    const size_t bracket = what.find("] ");
    return MakeError(ErrorCode::kInvalidArgument, "the request is no JSON: {}",
                     bracket == std::string::npos ? what : what.substr(bracket + 2));
  }
  if (too_deep) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the request nests deeper than the {} levels allowed", kMaxRequestDepth);
  }
  if (!json.is_object()) {
    return MakeError(ErrorCode::kInvalidArgument, "the request is {}, not a JSON object",
                     Shown(json));
  }
  return json;
}

// Null when the key is absent or null.
const Json* Find(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Status ReadInteger(const Json& object, std::string_view key, int64_t min, int64_t max,
                   int64_t& target) {
  const Json* value = Find(object, key);
  if (value == nullptr) return {};
  const bool fits = value->is_number_unsigned()
                        ? value->get<uint64_t>() <= static_cast<uint64_t>(max)
                        : value->is_number_integer();
  if (!fits || value->get<int64_t>() < min) {
    return MakeError(ErrorCode::kInvalidArgument, "{} {} is not an integer from {} to {}", key,
                     Shown(*value), min, max);
  }
  target = value->get<int64_t>();
  return {};
}

// With the range of the command line's option.
Status ReadOption(const Json& object, std::string_view key, std::string_view option,
                  int64_t& target) {
  const OptionSpec& spec = *FindOption(option);
  return ReadInteger(object, key, spec.integer_min, spec.integer_max, target);
}

Status ReadNumber(const Json& object, std::string_view key, double& target) {
  const Json* value = Find(object, key);
  if (value == nullptr) return {};
  if (!value->is_number()) {
    return MakeError(ErrorCode::kInvalidArgument, "{} {} is not a number", key, Shown(*value));
  }
  target = value->get<double>();
  return {};
}

Status ReadSampling(const Json& object, Request& request) {
  int64_t seed = static_cast<int64_t>(request.sampling.seq_seed);
  DI_RETURN_IF_ERROR(ReadOption(object, "max_tokens", "max-tokens", request.sampling.max_tokens));
  DI_RETURN_IF_ERROR(ReadOption(object, "seed", "seed", seed));
  DI_RETURN_IF_ERROR(ReadOption(object, "top_k", "top-k", request.sampling.top_k));
  DI_RETURN_IF_ERROR(ReadNumber(object, "temperature", request.sampling.temperature));
  DI_RETURN_IF_ERROR(ReadNumber(object, "top_p", request.sampling.top_p));
  DI_RETURN_IF_ERROR(ReadNumber(object, "min_p", request.sampling.min_p));
  request.sampling.seq_seed = static_cast<uint64_t>(seed);
  return ValidateSamplingParams(request.sampling);
}

// `text` is a valid object. Of a key that stands twice the parsed object has one value only.
Status CheckRepeatedKeys(std::string_view text) {
  std::set<std::string> keys;
  std::string repeated;
  const auto look = [&](int depth, Json::parse_event_t event, Json& key) {
    if (depth != 1 || event != Json::parse_event_t::key) return true;
    if (!keys.insert(key.get<std::string>()).second) repeated = key.get<std::string>();
    return false;  // the value is of no interest
  };
  [[maybe_unused]] const Json rest = Json::parse(text, look, /*allow_exceptions=*/false);
  if (repeated.empty()) return {};
  return MakeError(ErrorCode::kInvalidArgument, "the key \"{}\" stands twice in the request",
                   repeated);
}

Status CheckKeys(const Json& object) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(kKeys, key) != std::end(kKeys)) continue;
    return MakeError(ErrorCode::kInvalidArgument, "unknown key \"{}\"; a request has {}", key,
                     fmt::join(kKeys, ", "));
  }
  return {};
}

Result<std::vector<int32_t>> ReadIds(const Json& list) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const Json& value : list) {
    const bool fits =
        value.is_number_integer() && !(value < 0) && !(value > std::numeric_limits<int32_t>::max());
    if (!fits) {
      return MakeError(ErrorCode::kInvalidArgument, "prompt[{}]: {} is no token id", ids.size(),
                       Shown(value));
    }
    ids.push_back(value.get<int32_t>());
  }
  return ids;
}

// "raw", or what the chat options know.
Result<bool> ReadRawMode(const Json& object, bool default_raw) {
  const Json* mode = Find(object, "mode");
  if (mode == nullptr) return default_raw;
  for (const char* name : {"raw", "chat", "thinking"}) {
    if (*mode == name) return *mode == "raw";
  }
  return MakeError(ErrorCode::kInvalidArgument, "mode {} is none of chat, thinking, raw",
                   Shown(*mode));
}

// The request's text with its prompt as a list of one user message at the end, where it also
// replaces a "messages": null. The rest stays as written, so that schemas keep their key order and
// digits.
std::string WithMessages(std::string_view json, const std::string& prompt) {
  const size_t brace = json.rfind('}');
  const Json messages = Json::array({{{"role", "user"}, {"content", prompt}}});
  return fmt::format("{},\"messages\":{}}}", json.substr(0, brace), messages.dump());
}

Result<Request> ReadPromptText(std::string_view json, const std::string& text, bool raw,
                               const RequestDefaults& defaults, Request request) {
  if (text.empty()) return MakeError(ErrorCode::kInvalidArgument, "the prompt is empty");
  if (raw) {
    request.prompt = RawText{text};
    return request;
  }
  DI_ASSIGN_OR_RETURN(ChatRequest chat, ParseChatRequest(WithMessages(json, text), defaults.chat));
  ApplyChatDefaults(defaults, chat);
  request.prompt = std::move(chat);
  return request;
}

// {"name": ..., "arguments": "..."} in the OpenAI form.
Json ToolCallsJson(const std::vector<ParsedToolCall>& calls) {
  Json list = Json::array();
  for (const ParsedToolCall& call : calls) {
    list.push_back({{"id", fmt::format("call_{}", list.size() + 1)},
                    {"type", "function"},
                    {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return list;
}

Json ResponseHead(std::string_view id_json) {
  Json json = Json::object();
  if (!id_json.empty()) json["id"] = Json::parse(id_json);
  return json;
}

std::string OneLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void ApplyChatDefaults(const RequestDefaults& defaults, ChatRequest& chat) {
  const bool has_system = !chat.messages.empty() && chat.messages.front().role == Role::kSystem;
  if (!defaults.system.empty() && !has_system) {
    chat.messages.insert(chat.messages.begin(), ChatMessage::Text(Role::kSystem, defaults.system));
  }
  if (chat.tools.empty()) chat.tools = defaults.tools;
}

Result<Request> ParseRequest(std::string_view json, const RequestDefaults& defaults) {
  DI_ASSIGN_OR_RETURN(const Json object, ParseObject(json));
  DI_RETURN_IF_ERROR(CheckKeys(object));
  DI_RETURN_IF_ERROR(CheckRepeatedKeys(json));
  Request request{.sampling = defaults.sampling};
  if (const Json* id = Find(object, "id")) {
    if (!id->is_string() && !id->is_number_integer()) {
      return MakeError(ErrorCode::kInvalidArgument, "id {} is neither a string nor an integer",
                       Shown(*id));
    }
    request.id_json = id->dump();
  }
  DI_RETURN_IF_ERROR(ReadSampling(object, request));
  DI_ASSIGN_OR_RETURN(const bool raw, ReadRawMode(object, defaults.raw));

  const Json* prompt = Find(object, "prompt");
  const bool has_messages = Find(object, "messages") != nullptr;
  if ((prompt != nullptr) == has_messages) {
    return MakeError(ErrorCode::kInvalidArgument, "a request has either prompt or messages; {}",
                     has_messages ? "this one has both" : "this one has neither");
  }
  if (has_messages) {
    if (raw) {
      return MakeError(ErrorCode::kInvalidArgument, "mode raw takes prompt, not messages");
    }
    DI_ASSIGN_OR_RETURN(ChatRequest chat, ParseChatRequest(json, defaults.chat));
    ApplyChatDefaults(defaults, chat);
    request.prompt = std::move(chat);
    return request;
  }
  if (prompt->is_array()) {
    DI_ASSIGN_OR_RETURN(request.prompt, ReadIds(*prompt));
    return request;
  }
  if (!prompt->is_string()) {
    return MakeError(ErrorCode::kInvalidArgument, "prompt {} is neither text nor a list of ids",
                     Shown(*prompt));
  }
  return ReadPromptText(json, prompt->get<std::string>(), raw, defaults, std::move(request));
}

std::string RequestId(std::string_view json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return {};
  const Json* id = Find(object, "id");
  if (id == nullptr || !(id->is_string() || id->is_number_integer())) return {};
  return id->dump();
}

Result<Request> RequestFromText(std::string_view text, const RequestDefaults& defaults) {
  if (text.empty()) return MakeError(ErrorCode::kInvalidArgument, "the prompt is empty");
  DI_RETURN_IF_ERROR(RequireUtf8(text, "the prompt"));
  Request request{.sampling = defaults.sampling};
  if (defaults.raw) {
    request.prompt = RawText{std::string(text)};
    return request;
  }
  ChatRequest chat;
  chat.options = defaults.chat;
  chat.messages.push_back(ChatMessage::Text(Role::kUser, text));
  ApplyChatDefaults(defaults, chat);
  request.prompt = std::move(chat);
  return request;
}

Result<Prompt> RequestPrompt(const Request& request, const Tokenizer& tokenizer,
                             const ModelConfig& config) {
  if (const auto* chat = std::get_if<ChatRequest>(&request.prompt)) {
    return ChatPrompt(*chat, tokenizer);
  }
  if (const auto* raw = std::get_if<RawText>(&request.prompt)) {
    return RawPrompt(raw->text, tokenizer, config);
  }
  return Prompt{std::get<std::vector<int32_t>>(request.prompt), std::nullopt};
}

std::string ResponseJson(const Request& request, const Completion& completion) {
  const Usage& usage = completion.usage;
  Json json = ResponseHead(request.id_json);
  json["text"] = completion.output.content;
  json["reasoning"] = completion.output.reasoning;
  json["tool_calls"] = ToolCallsJson(completion.output.tool_calls);
  json["finish_reason"] = completion.finish_reason();
  if (completion.output.error) {
    json["error"] = {{"code", OutputErrorKindName(completion.output.error->kind)},
                     {"message", completion.output.error->message}};
  }
  json["usage"] = {{"prompt_tokens", usage.prompt_tokens},
                   {"completion_tokens", usage.completion_tokens},
                   {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
  return OneLine(json);
}

std::string ErrorJson(std::string_view id_json, int64_t line, const Error& error) {
  Json json = ResponseHead(id_json);
  json["line"] = line;
  json["error"] = {{"message", error.message}};
  return OneLine(json);
}

}  // namespace deepinfer
