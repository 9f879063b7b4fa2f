#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "sampling/random_stream.h"

namespace deepinfer {
namespace {

// The index of the largest logit, lowest index first. Checks every value.
Result<int32_t> ArgMax(std::span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  int32_t best = -1;
  float best_logit = -kInfinity;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < kInfinity)) {
      return MakeError(ErrorCode::kInternal, "the logit of token {} is {}", i, logits[i]);
    }
    if (logits[i] > best_logit) {
      best_logit = logits[i];
      best = static_cast<int32_t>(i);
    }
  }
  if (best < 0) {
    return MakeError(ErrorCode::kInternal, "none of the {} logits is finite", logits.size());
  }
  return best;
}

// Weight of a token relative to the best one, in [0, 1].
float Weight(float logit, float max_logit, double temperature) {
  return Exp(static_cast<float>((static_cast<double>(logit) - max_logit) / temperature));
}

// Total order of preference: larger logit, then lower id.
constexpr auto kBefore = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
};

}  // namespace

Result<int32_t> Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                                int64_t position) {
  DI_ASSIGN_OR_RETURN(const int32_t greedy, ArgMax(logits));
  if (params.temperature == 0) return greedy;
  const float max_logit = logits[static_cast<size_t>(greedy)];

  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == -std::numeric_limits<float>::infinity()) continue;
    if (params.min_p > 0 && Weight(logits[i], max_logit, params.temperature) < params.min_p)
      continue;
    candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  }
  ApplyTopK(params.top_k);
  ApplyTopP(params.top_p, params.temperature, max_logit);

  const RandomStream stream(params.seed, position);
  double best_score = -std::numeric_limits<double>::infinity();
  int32_t best = -1;
  for (const Candidate& candidate : candidates_) {
    // Relative to the best logit, so that a tiny temperature cannot overflow all scores alike.
    const double score = (static_cast<double>(candidate.logit) - max_logit) / params.temperature +
                         stream.Gumbel(candidate.token);
    if (score > best_score || (score == best_score && candidate.token < best)) {
      best_score = score;
      best = candidate.token;
    }
  }
  return best;
}

void Sampler::ApplyTopK(int64_t top_k) {
  if (top_k <= 0 || static_cast<uint64_t>(top_k) >= candidates_.size()) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + (top_k - 1), candidates_.end(),
                   kBefore);
  candidates_.resize(static_cast<size_t>(top_k));
  // Back to id order: the sum in ApplyTopP must not depend on how the selection left the array.
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
}

void Sampler::ApplyTopP(double top_p, double temperature, float max_logit) {
  if (top_p >= 1) return;
  // A heap instead of a sort: the kept set is usually a few tokens of a large vocabulary.
  double total = 0;
  for (const Candidate& c : candidates_) total += Weight(c.logit, max_logit, temperature);
  const auto after = [](const Candidate& a, const Candidate& b) { return kBefore(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), after);
  auto heap_end = candidates_.end();
  double before = 0;
  while (heap_end != candidates_.begin() && before <= top_p * total) {
    std::pop_heap(candidates_.begin(), heap_end, after);
    --heap_end;
    before += Weight(heap_end->logit, max_logit, temperature);
  }
  candidates_.erase(candidates_.begin(), heap_end);
}

}  // namespace deepinfer
