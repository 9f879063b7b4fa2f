#include "exec/prefill.h"

#include <algorithm>

namespace deepinfer {

Status ValidatePrefillPolicy(const PrefillPolicy& policy, const ModelConfig& config) {
  const int64_t smallest = config.sliding_window + kMinKeepBeyondWindow;
  if (policy.mode == PrefillMode::kCompact && policy.keep_tokens < smallest) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "prefill-keep-tokens {} is below {}: the answer's first tokens look back over "
                     "the sliding window of {} tokens and {} more, which the replay must have run",
                     policy.keep_tokens, smallest, config.sliding_window, kMinKeepBeyondWindow);
  }
  return {};
}

PrefillPolicy PrefillPolicyOf(const Options& options) {
  return {options.prefill_mode, options.prefill_keep_tokens};
}

int64_t DecoderStart(const PrefillPolicy& policy, int64_t prompt_tokens) {
  if (policy.mode == PrefillMode::kOff) return 0;
  return std::max<int64_t>(0, prompt_tokens - policy.keep_tokens);
}

}  // namespace deepinfer
