// Requests and responses as JSON lines, the form of `deepinfer generate --jsonl`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "engine/completion.h"
#include "sampling/sampling_params.h"

namespace deepinfer {

// What a request may leave out.
struct RequestDefaults {
  SamplingParams sampling;
  ChatOptions chat;
  bool raw = false;                   // "mode" of a request that has none
  std::string system;                 // put before messages that begin with no system message
  std::vector<ToolDefinition> tools;  // for requests without their own
};

// Adds the default system message and tools where the request has none of its own.
void ApplyChatDefaults(const RequestDefaults& defaults, ChatRequest& chat);

struct RawText {
  std::string text;
};

struct Request {
  std::string id_json = {};  // the id as JSON text ("7", "\"a\""); empty: none given
  std::variant<ChatRequest, RawText, std::vector<int32_t>> prompt = {};
  SamplingParams sampling;
};

// One JSON object:
//   id               string or integer, given back in the response
//   prompt           text, read as one user message (with "mode": "raw" as it is), or a list of
//                    token ids, read as they are; or
//   messages         chat messages, with tools, response_format, reasoning_effort, drop_thinking
//                    as in chat/message.h
//   mode             "chat", "thinking" or "raw"
//   max_tokens, temperature, top_p, top_k, min_p, seed
// null counts as absent; numbers have the ranges of the options of the same name. Errors name the
// key, its value and what is allowed; an unknown key and one that stands twice are errors.
Result<Request> ParseRequest(std::string_view json, const RequestDefaults& defaults);

// The id of a request that may otherwise be broken, as JSON text; empty when it has none.
std::string RequestId(std::string_view json);

// A request from text on the command line: the user's message, or the raw prompt.
Result<Request> RequestFromText(std::string_view text, const RequestDefaults& defaults);

// Ids for the model, by whatever form the request's prompt has.
Result<Prompt> RequestPrompt(const Request& request, const Tokenizer& tokenizer,
                             const ModelConfig& config);

// {"id", "text", "reasoning", "tool_calls", "finish_reason", "usage"} on one line, without a line
// break; "id" only when the request has one, "error" when the output could not be parsed.
std::string ResponseJson(const Request& request, const Completion& completion);

// {"id", "line", "error": {"message"}} on one line. `line` counts from 1.
std::string ErrorJson(std::string_view id_json, int64_t line, const Error& error);

}  // namespace deepinfer
