// Which drafted tokens stand. Pure functions over the rows of one request; everything random comes
// from (seed, position). Source: spec algorithms section 1.7.
//
// Coupled: draft and target draw from Stream::kTarget at the same position, so the output is what
// it would be without drafting: targets[0..accepted], the last of which is the correction or the
// bonus. With temperature 0 this is greedy acceptance.
//
// Ratio test: lossless in distribution for any proposal, but the output depends on the drafts. The
// draft draws from Stream::kDraft; a row all of whose drafts stood draws its bonus from kTarget.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/random_stream.h"

namespace deepinfer {

// How many leading drafts equal the target's own draw. targets[k] was drawn in the row whose
// history ends with drafts[0..k); at least as many targets as drafts.
int64_t CoupledAccepted(std::span<const int32_t> drafts, std::span<const int32_t> targets);

// Log-probabilities over the vocabulary, as Sampler::LogProbabilities writes them; at least one is
// finite.
struct RatioRow {
  std::span<const float> log_p;  // target, after drafts[0..k)
  // The proposal the draft was drawn from, of the same size; empty: it proposed `draft` with
  // probability 1 (argmax, n-gram).
  std::span<const float> log_q;
  int32_t draft = 0;
  uint64_t seed = 0;
  int64_t position = 0;  // of the drafted token
};

struct RatioOutcome {
  bool accepted = false;
  int32_t token = 0;  // the draft, or the draw that takes its place
};

// Accepts with probability min(1, p / q); else draws from the residual.
RatioOutcome RatioTest(const RatioRow& row);

// One draw proportional to max(p - q, 0), in log space: log p + log1p(-q / p). Where that is 0
// everywhere, as for p = q up to rounding, from p. Ties go to the lowest id.
int32_t DrawResidual(const RatioRow& row, const RandomStream& stream);

}  // namespace deepinfer
