// How tokens are chosen from logits and when an answer ends. What each field does to the logits,
// and in which order, is in docs/sampling.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace deepinfer {

struct LogitBias {
  int32_t token = 0;
  double bias = 0;  // [-100, 100]
  friend bool operator==(const LogitBias&, const LogitBias&) = default;
};

// A form that the answer must have: every token that would leave it is masked. In thinking mode it
// holds from the token after </think> on.
struct StructuredOutput {
  // "json_schema" (or "json"), "json_object", "regex", "ebnf" (or "grammar", "gbnf"), "lark".
  std::string schema_type = {};
  // The JSON schema, expression or grammar; empty for "json_object".
  std::string schema = {};
  friend bool operator==(const StructuredOutput&, const StructuredOutput&) = default;
};

// A value; any number of requests may use a copy.
struct SamplingParams {
  double temperature = 0;  // 0: the largest logit (greedy); else in (0, 100]
  double top_p = 1;        // (0, 1]; 1 keeps everything
  int64_t top_k = 0;       // >= 0; 0 keeps everything
  double min_p = 0;        // [0, 1]; drops tokens below min_p times the best probability
  // Of the random draws. A token is a function of logits, parameters, seed and position alone;
  // choice i > 0 of n draws from a seed derived from this one and i.
  uint64_t seq_seed = 0;

  double repetition_penalty = 1;  // [0.01, 100]; over prompt and output
  double frequency_penalty = 0;   // [-2, 2]; for each occurrence in the output
  double presence_penalty = 0;    // [-2, 2]; for occurring in the output at all

  std::vector<LogitBias> logit_bias = {};       // each token at most once
  std::vector<int32_t> allowed_token_ids = {};  // empty: every token
  std::vector<int32_t> bad_token_ids = {};      // never chosen
  std::vector<std::string> stop = {};           // UTF-8; the output ends before any of them
  std::vector<int32_t> stop_token_ids = {};     // end the output like the end token
  // [1, 2^20]; what the context has no room for is cut off: the output then ends with
  // FinishReason::kContext.
  int64_t max_tokens = 512;
  int64_t min_tokens = 0;  // neither end tokens nor stop strings before these; <= max_tokens
  int64_t n = 1;           // choices, [1, 128]
  std::optional<int64_t> logprobs = {};         // 0: of the chosen token; up to 20 of the best
  std::optional<int64_t> prompt_logprobs = {};  // the same for every token of the prompt
  bool ignore_eos = false;                      // the end token does not end the output
  std::optional<StructuredOutput> so_args = {};

  friend bool operator==(const SamplingParams&, const SamplingParams&) = default;
};

}  // namespace deepinfer
