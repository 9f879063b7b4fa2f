// The passes over a whole vocabulary row. Results do not depend on the instruction set.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "sampling/random_stream.h"
#include "sampling/row_view.h"

namespace deepinfer {

// Checks a row and finds its maxima, which stay in scratch.block_max.
// Errors: a NaN or +infinity, which names the token; a row without any finite logit.
Result<RowView> ScanRow(std::span<const float> logits, RowScratch& scratch);

// Those errors, from the best token of a row of `tokens`: the largest logit, NaN before all others.
Status CheckBest(const Candidate& best, int64_t tokens);

// Sum of the masses of all logits >= `lowest`.
uint64_t TotalMass(const RowView& row, const Scale& scale, float lowest);
// Of the tokens of a cut.
uint64_t TotalMass(const RowView& row, const Scale& scale, const Cut& cut);

// The tokens with low <= logit < below, `low` finite, in ascending id order. They lie in
// scratch.candidates.
std::span<Candidate> Gather(const RowView& row, float low, float below, RowScratch& scratch);

// How many tokens come before `token` in the order of preference.
int64_t CountBefore(const RowView& row, const Candidate& token);

// The token of `cut` with the largest Scaled + Gumbel of `stream`; ties go to the lowest id. It is
// the token that evaluating every one would give: noise is computed exactly only where its leading
// bits leave a chance to win.
int32_t DrawToken(const RowView& row, const Scale& scale, const Cut& cut,
                  const RandomStream& stream);

// Writes -infinity wherever the bit of a token, bit id % 32 of word id / 32, is 0.
void ApplyBitMask(std::span<const uint32_t> mask, std::span<float> logits);

}  // namespace deepinfer
