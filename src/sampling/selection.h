// Which tokens of a row survive min-p, top-k and top-p, without sorting the vocabulary.
// Source: spec algorithms section 4.1.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/row_view.h"
#include "sampling/sampling_params.h"

namespace deepinfer {

// The best `count` (>= 1) tokens with a logit >= `lowest`, or all of these where they are fewer, in
// any order, in scratch.candidates.
std::span<Candidate> SelectTop(const RowView& row, int64_t count, float lowest,
                               RowScratch& scratch);

// Keeps, of the order of preference, a token
//   min-p:  while Scaled >= log(min_p);
//   top-k:  for k tokens;
//   top-p:  while the mass before it is at most floor(top_p * mass of all that is left so far).
// The best token always stays. The result is exact: it does not depend on how it is found.
Cut SelectTokens(const RowView& row, const Scale& scale, const SamplingParams& params,
                 RowScratch& scratch);

}  // namespace deepinfer
