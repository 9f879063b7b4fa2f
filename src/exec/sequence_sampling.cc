#include "exec/sequence_sampling.h"

#include <algorithm>
#include <utility>

#include "sampling/sampling_params.h"

namespace deepinfer::exec {

SequenceSampling::SequenceSampling(SamplingParams params, std::span<const int32_t> prompt,
                                   int32_t eos_token)
    : params_(std::move(params)),
      eos_token_(params_.ignore_eos ? -1 : eos_token),
      keeps_history_(HasPenalties(params_) || params_.min_tokens > 0) {
  if (params_.repetition_penalty != 1) history_ = TokenHistory(prompt);
}

SampleRow SequenceSampling::Row(int64_t position) const {
  return {.position = position,
          .history = keeps_history_ ? &history_ : nullptr,
          .eos_token = eos_token_};
}

void SequenceSampling::Append(int32_t token) {
  if (keeps_history_) history_.Append(token);
  ended_ = Ends(token);
}

bool SequenceSampling::Ends(int32_t token) const {
  return token == eos_token_ ||
         std::ranges::find(params_.stop_token_ids, token) != params_.stop_token_ids.end();
}

void SequenceSampling::ForbidEnds(std::span<uint32_t> mask) const {
  const auto forbid = [mask](int32_t token) {
    mask[static_cast<size_t>(token) / 32] &= ~(uint32_t{1} << token % 32);
  };
  if (eos_token_ >= 0) forbid(eos_token_);
  for (const int32_t token : params_.stop_token_ids) forbid(token);
}

}  // namespace deepinfer::exec
