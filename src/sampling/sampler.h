// Draws one token from one row of logits. Source: spec algorithms sections 4.1 and 4.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "sampling/sampling_params.h"

namespace deepinfer {

// Holds scratch memory only: the token is a pure function of (logits, params, position). Not
// thread-safe.
class Sampler {
 public:
  // `logits` is one vocabulary row, `position` the absolute position of the token to be drawn,
  // `params` has passed ValidateSamplingParams.
  //
  // Order: temperature, min-p, top-k (ties keep the lowest ids, so exactly k survive), then top-p
  // over the renormalised rest (keeps a token while the sum before it is at most top_p), then the
  // largest z/T + Gumbel(seed, position, id). Ties go to the lowest id. A logit of -infinity is
  // never chosen.
  // Errors: a NaN or +infinity names the token id; a row without any finite logit.
  Result<int32_t> Sample(std::span<const float> logits, const SamplingParams& params,
                         int64_t position);

 private:
  struct Candidate {
    float logit;
    int32_t token;
  };
  void ApplyTopK(int64_t top_k);
  void ApplyTopP(double top_p, double temperature, float max_logit);

  std::vector<Candidate> candidates_;
};

}  // namespace deepinfer
