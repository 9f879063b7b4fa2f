#include "sampling/sampling_params.h"

namespace deepinfer {

// Each test is written so that NaN fails it.
Status ValidateSamplingParams(const SamplingParams& params) {
  if (!(params.temperature >= 0 && params.temperature <= 100)) {
    return MakeError(ErrorCode::kInvalidArgument, "temperature {} is outside 0 to 100",
                     params.temperature);
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return MakeError(ErrorCode::kInvalidArgument, "top_p {} is outside (0, 1]: above 0, at most 1",
                     params.top_p);
  }
  if (params.top_k < 0) {
    return MakeError(ErrorCode::kInvalidArgument, "top_k {} is negative; 0 turns it off",
                     params.top_k);
  }
  if (!(params.min_p >= 0 && params.min_p <= 1)) {
    return MakeError(ErrorCode::kInvalidArgument, "min_p {} is outside 0 to 1", params.min_p);
  }
  return {};
}

}  // namespace deepinfer
