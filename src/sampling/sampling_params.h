// Ranges of the sampling parameters. Source: spec algorithms section 4, product section 2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "deepinfer/sampling_params.h"

namespace deepinfer {

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
