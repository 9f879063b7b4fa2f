// Which tokens of a prompt run the decoder half.
// Source: spec model-v41 section 5.1.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "config/model_config.h"
#include "config/options.h"

namespace deepinfer {

struct PrefillPolicy {
  PrefillMode mode = PrefillMode::kOff;
  int64_t keep_tokens = 140;  // compact mode: last prompt tokens that run every layer
};

// Tokens beyond the sliding window that compact mode must keep, so that the next tokens after the
// prompt never look back at a position the replay skipped.
inline constexpr int64_t kMinKeepBeyondWindow = 12;

// Errors name the field, its value and the allowed range.
Status ValidatePrefillPolicy(const PrefillPolicy& policy, const ModelConfig& config);

PrefillPolicy PrefillPolicyOf(const Options& options);

// First position that runs the decoder half, the same for all chunks of a prompt: it depends on
// the prompt's length alone.
int64_t DecoderStart(const PrefillPolicy& policy, int64_t prompt_tokens);

}  // namespace deepinfer
