// How tokens are chosen from logits and when a request ends. Source: spec algorithms section 4,
// product section 2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace deepinfer {

struct LogitBias {
  int32_t token = 0;
  double bias = 0;  // [-100, 100]
  friend bool operator==(const LogitBias&, const LogitBias&) = default;
};

struct SamplingParams {
  double temperature = 0;  // 0: the largest logit (greedy); else in (0, 100]
  double top_p = 1;        // (0, 1]; 1 keeps everything
  int64_t top_k = 0;       // >= 0; 0 keeps everything
  double min_p = 0;        // [0, 1]; drops tokens below min_p times the best probability
  uint64_t seed = 0;       // of choice 0; see ChildSeed for the others

  double repetition_penalty = 1;  // [0.01, 100]; over prompt and output
  double frequency_penalty = 0;   // [-2, 2]; for each occurrence in the output
  double presence_penalty = 0;    // [-2, 2]; for occurring in the output at all

  std::vector<LogitBias> logit_bias = {};       // each token at most once
  std::vector<int32_t> allowed_token_ids = {};  // empty: every token
  std::vector<int32_t> bad_token_ids = {};      // never chosen
  std::vector<std::string> stop = {};           // UTF-8; the output ends before any of them
  std::vector<int32_t> stop_token_ids = {};     // end the output like the end token
  int64_t max_tokens = 512;                     // [1, 2^20]
  int64_t min_tokens = 0;                       // no end token before these; <= max_tokens
  int64_t n = 1;                                // choices, [1, 128]
  std::optional<int64_t> logprobs = {};         // 0: of the chosen token; up to 20 of the best
  std::optional<int64_t> prompt_logprobs = {};  // the same for every token of the prompt
  bool ignore_eos = false;                      // the end token does not end the output

  friend bool operator==(const SamplingParams&, const SamplingParams&) = default;
};

// Limits of the lists.
inline constexpr size_t kMaxLogitBiases = 1024;
inline constexpr size_t kMaxStopStrings = 64;
inline constexpr size_t kMaxStopBytes = 256;  // of one stop string
inline constexpr size_t kMaxStopTokenIds = 128;
inline constexpr int64_t kMaxTokensLimit = int64_t{1} << 20;
inline constexpr int64_t kMaxChoices = 128;
inline constexpr int64_t kMaxLogprobs = 20;

// Whether a penalty is on, so that Sampler needs the request's history.
bool HasPenalties(const SamplingParams& params);

// Errors name the field, its value and the allowed range. Token ids are only known not to be
// negative; whether stop strings are UTF-8, StopChecker says.
Status ValidateSamplingParams(const SamplingParams& params);

// Errors: a token id of logit_bias, allowed_token_ids, bad_token_ids or stop_token_ids that is not
// below `vocab_size`.
Status ValidateTokenIds(const SamplingParams& params, int64_t vocab_size);

}  // namespace deepinfer
