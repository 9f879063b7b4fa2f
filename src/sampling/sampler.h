// Draws one token from one row of logits. Source: spec algorithms sections 4.1 and 4.2,
// docs/sampling.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "sampling/logit_processor.h"
#include "sampling/logprobs.h"
#include "sampling/sampling_params.h"

namespace deepinfer {

// Whether Sample only reads the row's largest logit: temperature 0, nothing that changes logits and
// no logprobs. Then BestToken gives the same from that logit alone. `row` without logits.
bool TakesBest(const SampleRow& row, const SamplingParams& params);

// The token of a row's best logit: the largest, NaN before all others, at its lowest id.
// Errors: a logit that is NaN or infinite, as Sample reports it; of several such in a row, Sample
// names the one with the lowest id.
Result<int32_t> BestToken(float logit, int32_t token, int64_t vocab_size);

// Holds scratch memory only, which grows to the vocabulary on first use: the token is a pure
// function of the row and the parameters. Not thread-safe.
class Sampler {
 public:
  explicit Sampler(LogprobsMode mode = LogprobsMode::kRaw) : mode_(mode) {}

  // `params` has passed ValidateSamplingParams. Order: ApplyLogitProcessors, temperature, min-p,
  // top-k, top-p (SelectTokens), then the largest scaled logit + Gumbel(seed, position, stream, id)
  // of what is left; temperature 0 takes the largest logit instead. Ties go to the lowest id. A
  // logit of -infinity is never chosen. `logprobs`, where given, is filled with the token's and
  // params.logprobs (none: 0) of the best.
  // Errors: a NaN or +infinity, before or after processing, names the token id; no token left;
  // those of ApplyLogitProcessors.
  Result<int32_t> Sample(const SampleRow& row, const SamplingParams& params,
                         TokenLogprobs* logprobs = nullptr);

  // The same without history, mask and end token.
  Result<int32_t> Sample(std::span<const float> logits, const SamplingParams& params,
                         int64_t position);

  // Writes log p of every token, as Sample draws it: [vocabulary], -infinity for what cannot be
  // drawn. Temperature 0 gives 0 to the one token. The rows of the ratio test (acceptance.h).
  Status LogProbabilities(const SampleRow& row, const SamplingParams& params, std::span<float> out);

 private:
  struct Prepared {
    RowView row;
    Scale scale;
    Cut cut;
  };
  Result<Prepared> Prepare(const SampleRow& row, const SamplingParams& params);

  LogprobsMode mode_;
  std::vector<float> processed_;
  RowScratch scratch_;
};

}  // namespace deepinfer
