#include "sampling/sampler.h"

#include <algorithm>

#include "sampling/row_kernels.h"
#include "sampling/selection.h"

namespace deepinfer {
namespace {

// Beyond this any difference of two logits is larger than all noise, and 0 times it is still 0.
constexpr double kMaxInverseTemperature = 1e300;

double InverseTemperature(const SamplingParams& params) {
  if (params.temperature == 0) return 1;
  return std::min(1 / params.temperature, kMaxInverseTemperature);
}

}  // namespace

bool TakesBest(const SampleRow& row, const SamplingParams& params) {
  return params.temperature == 0 && !params.logprobs.has_value() && !ChangesLogits(row, params);
}

Result<int32_t> BestToken(float logit, int32_t token, int64_t vocab_size) {
  DI_RETURN_IF_ERROR(CheckBest({logit, token}, vocab_size));
  return token;
}

// The row after everything that comes before the draw. Greedy selects the best token alone.
Result<Sampler::Prepared> Sampler::Prepare(const SampleRow& in, const SamplingParams& params) {
  Prepared out;
  DI_ASSIGN_OR_RETURN(out.row, ScanRow(in.logits, scratch_));
  if (ChangesLogits(in, params)) {
    processed_.assign(in.logits.begin(), in.logits.end());
    DI_RETURN_IF_ERROR(ApplyLogitProcessors(in, params, processed_));
    auto scanned = ScanRow(processed_, scratch_);
    if (!scanned) return Forward(scanned.error(), "after bias, masks and penalties");
    out.row = *scanned;
  }
  out.scale = {out.row.max, InverseTemperature(params)};
  if (params.temperature > 0) {
    out.cut = SelectTokens(out.row, out.scale, params, scratch_);
  }
  return out;
}

Result<int32_t> Sampler::Sample(const SampleRow& in, const SamplingParams& params,
                                TokenLogprobs* logprobs) {
  DI_ASSIGN_OR_RETURN(const Prepared ready, Prepare(in, params));
  int32_t token = ready.row.max_token;
  if (params.temperature > 0) {
    token = DrawToken(ready.row, ready.scale, ready.cut,
                      RandomStream(params.seq_seed, in.position, in.stream));
  }
  if (logprobs == nullptr) return token;
  const int64_t top_count = params.logprobs.value_or(0);
  if (mode_ == LogprobsMode::kRaw) {
    DI_RETURN_IF_ERROR(RawLogprobs(in.logits, token, top_count, scratch_, *logprobs));
  } else {
    const uint64_t mass = TotalMass(ready.row, ready.scale, ready.cut);
    FillLogprobs(ready.row, ready.scale, ready.cut, mass, token, top_count, scratch_, *logprobs);
  }
  return token;
}

Result<int32_t> Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                                int64_t position) {
  return Sample(SampleRow{.logits = logits, .position = position}, params);
}

Status Sampler::LogProbabilities(const SampleRow& in, const SamplingParams& params,
                                 std::span<float> out) {
  if (out.size() != in.logits.size()) {
    return MakeError(ErrorCode::kInternal, "{} log-probabilities are asked for {} logits",
                     out.size(), in.logits.size());
  }
  DI_ASSIGN_OR_RETURN(const Prepared ready, Prepare(in, params));
  std::fill(out.begin(), out.end(), -std::numeric_limits<float>::infinity());
  if (params.temperature == 0) {
    out[static_cast<size_t>(ready.row.max_token)] = 0;
    return {};
  }
  const double log_mass = LogMass(TotalMass(ready.row, ready.scale, ready.cut));
  for (size_t i = 0; i < out.size(); ++i) {
    const Candidate c{ready.row.logits[i], static_cast<int32_t>(i)};
    if (ready.cut.Keeps(c)) out[i] = static_cast<float>(ready.scale.Scaled(c.logit) - log_mass);
  }
  return {};
}

}  // namespace deepinfer
