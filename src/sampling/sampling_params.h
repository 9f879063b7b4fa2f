// How the next token is chosen from the logits. Source: spec algorithms section 4.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace deepinfer {

struct SamplingParams {
  double temperature = 0;  // 0: the largest logit (greedy); else in (0, 100]
  double top_p = 1;        // (0, 1]; 1 keeps everything
  int64_t top_k = 0;       // >= 0; 0 keeps everything
  double min_p = 0;        // [0, 1]; drops tokens below min_p times the best probability
  uint64_t seed = 0;

  friend bool operator==(const SamplingParams&, const SamplingParams&) = default;
};

// Errors name the field, its value and the allowed range.
Status ValidateSamplingParams(const SamplingParams& params);

}  // namespace deepinfer
