#include "sampling/sampling_params.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace deepinfer {
namespace {

// The test is written so that NaN fails it.
Status CheckRange(std::string_view field, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return MakeError(ErrorCode::kInvalidArgument, "{} {} is outside {} to {}", field, value, low,
                   high);
}

Status CheckRange(std::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return MakeError(ErrorCode::kInvalidArgument, "{} {} is outside {} to {}", field, value, low,
                   high);
}

Status CheckCount(std::string_view field, size_t count, size_t limit) {
  if (count <= limit) return {};
  return MakeError(ErrorCode::kInvalidArgument, "{} has {} entries; at most {} are allowed", field,
                   count, limit);
}

Status CheckId(std::string_view field, int32_t id, int64_t vocab_size) {
  if (id >= 0 && id < vocab_size) return {};
  return MakeError(ErrorCode::kInvalidArgument, "token id {} of {} is outside 0 to {}", id, field,
                   vocab_size - 1);
}

Status CheckIds(std::string_view field, const std::vector<int32_t>& ids, int64_t vocab_size) {
  for (const int32_t id : ids) DI_RETURN_IF_ERROR(CheckId(field, id, vocab_size));
  return {};
}

Status CheckFilters(const SamplingParams& params) {
  DI_RETURN_IF_ERROR(CheckRange("temperature", params.temperature, 0.0, 100.0));
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return MakeError(ErrorCode::kInvalidArgument, "top_p {} is outside (0, 1]: above 0, at most 1",
                     params.top_p);
  }
  if (params.top_k < 0) {
    return MakeError(ErrorCode::kInvalidArgument, "top_k {} is negative; 0 turns it off",
                     params.top_k);
  }
  return CheckRange("min_p", params.min_p, 0.0, 1.0);
}

Status CheckLogitBias(const std::vector<LogitBias>& biases) {
  DI_RETURN_IF_ERROR(CheckCount("logit_bias", biases.size(), kMaxLogitBiases));
  std::vector<int32_t> ids;
  for (const LogitBias& entry : biases) {
    if (!(entry.bias >= -100 && entry.bias <= 100)) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "logit_bias {} of token {} is outside -100 to 100", entry.bias, entry.token);
    }
    ids.push_back(entry.token);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return {};
  return MakeError(ErrorCode::kInvalidArgument, "logit_bias names token {} more than once", *twice);
}

Status CheckStops(const SamplingParams& params) {
  DI_RETURN_IF_ERROR(CheckCount("stop", params.stop.size(), kMaxStopStrings));
  for (size_t i = 0; i < params.stop.size(); ++i) {
    const size_t bytes = params.stop[i].size();
    if (bytes < 1 || bytes > kMaxStopBytes) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "string {} of stop has {} bytes, which is outside 1 to {}", i, bytes,
                       kMaxStopBytes);
    }
  }
  return CheckCount("stop_token_ids", params.stop_token_ids.size(), kMaxStopTokenIds);
}

}  // namespace

bool HasPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.frequency_penalty != 0 ||
         params.presence_penalty != 0;
}

Status ValidateSamplingParams(const SamplingParams& params) {
  DI_RETURN_IF_ERROR(CheckFilters(params));
  DI_RETURN_IF_ERROR(CheckRange("repetition_penalty", params.repetition_penalty, 0.01, 100.0));
  DI_RETURN_IF_ERROR(CheckRange("frequency_penalty", params.frequency_penalty, -2.0, 2.0));
  DI_RETURN_IF_ERROR(CheckRange("presence_penalty", params.presence_penalty, -2.0, 2.0));
  DI_RETURN_IF_ERROR(CheckLogitBias(params.logit_bias));
  DI_RETURN_IF_ERROR(CheckStops(params));
  DI_RETURN_IF_ERROR(CheckRange("max_tokens", params.max_tokens, int64_t{1}, kMaxTokensLimit));
  if (params.min_tokens < 0 || params.min_tokens > params.max_tokens) {
    return MakeError(ErrorCode::kInvalidArgument, "min_tokens {} is outside 0 to max_tokens {}",
                     params.min_tokens, params.max_tokens);
  }
  DI_RETURN_IF_ERROR(CheckRange("n", params.n, int64_t{1}, kMaxChoices));
  if (params.logprobs) {
    DI_RETURN_IF_ERROR(CheckRange("logprobs", *params.logprobs, int64_t{0}, kMaxLogprobs));
  }
  if (params.prompt_logprobs) {
    DI_RETURN_IF_ERROR(
        CheckRange("prompt_logprobs", *params.prompt_logprobs, int64_t{0}, kMaxLogprobs));
  }
  return ValidateTokenIds(params, int64_t{std::numeric_limits<int32_t>::max()} + 1);
}

Status ValidateTokenIds(const SamplingParams& params, int64_t vocab_size) {
  for (const LogitBias& entry : params.logit_bias) {
    DI_RETURN_IF_ERROR(CheckId("logit_bias", entry.token, vocab_size));
  }
  DI_RETURN_IF_ERROR(CheckIds("allowed_token_ids", params.allowed_token_ids, vocab_size));
  DI_RETURN_IF_ERROR(CheckIds("bad_token_ids", params.bad_token_ids, vocab_size));
  return CheckIds("stop_token_ids", params.stop_token_ids, vocab_size);
}

}  // namespace deepinfer
