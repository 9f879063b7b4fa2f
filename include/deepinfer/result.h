// What a request gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/logprobs.h"

namespace deepinfer {

enum class FinishReason {
  kStop,       // the end token, a stop token, a stop string, or a grammar that is complete
  kLength,     // max_tokens
  kContext,    // the context is full
  kCancelled,  // RequestHandle::Cancel, or the engine is gone
  kDeadline,   // the request's deadline passed
  kError,      // it could not go on; `error` says why
};

// "stop", "length" (both limits), "cancelled", "deadline", "error".
std::string_view FinishReasonName(FinishReason reason);

// One answer. Of n choices each has its own.
struct CompletionOutput {
  int64_t index = 0;  // of the choice
  std::string text;   // without end tokens and stop string
  // All that were drawn: the end token and those of the stop string included.
  std::vector<int32_t> token_ids;
  // One a token, where SamplingParams::logprobs is set, and the sum of the chosen ones.
  std::vector<TokenLogprobs> logprobs;
  double cumulative_logprob = 0;
  std::optional<FinishReason> finish_reason;  // unset: not finished
  std::optional<int32_t> stop_token;          // the token of stop_token_ids that ended it
  std::optional<std::string> stop_string;     // the string of `stop` that did
  std::string error;                          // with kError, for people
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;      // of the prompt, taken from the prefix cache by the first choice
  int64_t completion_tokens = 0;  // of all choices
};

// In seconds since the request was submitted; 0 where it did not come so far.
struct RequestTimings {
  double scheduled = 0;    // its first row was planned
  double first_token = 0;  // of any choice
  double finished = 0;
};

struct RequestOutput {
  uint64_t request_id = 0;
  std::vector<int32_t> prompt_token_ids;
  // One a prompt token but the first, where SamplingParams::prompt_logprobs is set.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::vector<CompletionOutput> outputs;  // one a choice
  Usage usage;
  RequestTimings timings;
  int64_t preemptions = 0;  // how often a choice lost its memory to others and was computed again
  bool finished = false;
};

// What came for one choice since the last one.
struct OutputDelta {
  int64_t index = 0;  // of the choice
  std::string text;   // whole UTF-8 characters, no part of which may begin a stop string
  std::vector<int32_t> token_ids;
  std::vector<TokenLogprobs> logprobs;
  std::optional<FinishReason> finish_reason;  // set: the last one of this choice
  std::string error;
};

}  // namespace deepinfer
