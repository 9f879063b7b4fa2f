#include "sampling/logit_processor.h"

#include <algorithm>
#include <limits>

#include "sampling/row_kernels.h"

namespace deepinfer {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

void AllowOnly(const SampleRow& row, const std::vector<int32_t>& ids, std::span<float> logits) {
  std::fill(logits.begin(), logits.end(), kMasked);
  for (const int32_t id : ids)
    logits[static_cast<size_t>(id)] = row.logits[static_cast<size_t>(id)];
}

void Forbid(std::span<const int32_t> ids, std::span<float> logits) {
  for (const int32_t id : ids) logits[static_cast<size_t>(id)] = kMasked;
}

bool HoldsBackEnd(const SampleRow& row, const SamplingParams& params) {
  return params.min_tokens > 0 && row.history->output_length() < params.min_tokens;
}

void ApplyPenalties(const TokenHistory& history, const SamplingParams& params,
                    std::span<float> logits) {
  const float repetition = static_cast<float>(params.repetition_penalty);
  const float frequency = static_cast<float>(params.frequency_penalty);
  const float presence = static_cast<float>(params.presence_penalty);
  for (const TokenHistory::Entry& entry : history.entries()) {
    float& z = logits[static_cast<size_t>(entry.token)];
    z = z > 0 ? z / repetition : z * repetition;
    if (entry.output_count == 0) continue;
    z -= frequency * static_cast<float>(entry.output_count);
    z -= presence;
  }
}

Status CheckHistory(const SampleRow& row, const SamplingParams& params) {
  if (!HasPenalties(params) && params.min_tokens == 0) return {};
  if (row.history == nullptr) {
    return MakeError(ErrorCode::kInternal, "penalties and min_tokens {} need the request's history",
                     params.min_tokens);
  }
  const int64_t vocab_size = static_cast<int64_t>(row.logits.size());
  for (const TokenHistory::Entry& entry : row.history->entries()) {
    if (entry.token < 0 || entry.token >= vocab_size) {
      return MakeError(ErrorCode::kInternal, "token id {} of the history is outside 0 to {}",
                       entry.token, vocab_size - 1);
    }
  }
  return {};
}

Status CheckInputs(const SampleRow& row, const SamplingParams& params) {
  const int64_t vocab_size = static_cast<int64_t>(row.logits.size());
  const size_t words = (row.logits.size() + 31) / 32;
  if (!row.grammar_mask.empty() && row.grammar_mask.size() < words) {
    return MakeError(ErrorCode::kInternal, "the grammar mask has {} words; {} logits need {}",
                     row.grammar_mask.size(), vocab_size, words);
  }
  if (row.eos_token >= vocab_size) {
    return MakeError(ErrorCode::kInternal, "the end token {} is outside 0 to {}", row.eos_token,
                     vocab_size - 1);
  }
  DI_RETURN_IF_ERROR(CheckHistory(row, params));
  return ValidateTokenIds(params, vocab_size);
}

}  // namespace

bool ChangesLogits(const SampleRow& row, const SamplingParams& params) {
  return !row.grammar_mask.empty() || !params.logit_bias.empty() ||
         !params.allowed_token_ids.empty() || !params.bad_token_ids.empty() ||
         params.min_tokens > 0 || HasPenalties(params);
}

Status ApplyLogitProcessors(const SampleRow& row, const SamplingParams& params,
                            std::span<float> logits) {
  DI_RETURN_IF_ERROR(CheckInputs(row, params));
  if (!params.allowed_token_ids.empty()) AllowOnly(row, params.allowed_token_ids, logits);
  Forbid(params.bad_token_ids, logits);
  for (const LogitBias& entry : params.logit_bias) {
    logits[static_cast<size_t>(entry.token)] += static_cast<float>(entry.bias);
  }
  if (HoldsBackEnd(row, params)) {
    if (row.eos_token >= 0) Forbid({&row.eos_token, 1}, logits);
    Forbid(params.stop_token_ids, logits);
  }
  if (!row.grammar_mask.empty()) ApplyBitMask(row.grammar_mask, logits);
  if (HasPenalties(params)) ApplyPenalties(*row.history, params, logits);
  return {};
}

}  // namespace deepinfer
