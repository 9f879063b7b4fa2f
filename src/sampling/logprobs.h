// Log-probabilities of a row's tokens. Source: spec algorithms section 4.1.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "deepinfer/logprobs.h"
#include "sampling/selection.h"

namespace deepinfer {

enum class LogprobsMode {
  kRaw,        // of the model's logits, before everything
  kProcessed,  // of what the draw sees: after bias, masks, penalties, temperature and filters
};

// The log-softmax over the tokens of a cut with the mass `mass`; -infinity outside it. The
// sum is one of integers (Scale::Mass), hence the same whatever computes it in whatever order;
// results are within 2e-6 of the exact ones. `chosen` is an id of the row; 0 <= `top_count`.
// Overwrites scratch.candidates.
void FillLogprobs(const RowView& row, const Scale& scale, const Cut& cut, uint64_t mass,
                  int32_t chosen, int64_t top_count, RowScratch& scratch, TokenLogprobs& out);

// The same over a whole row of raw logits: for LogprobsMode::kRaw and for tokens of the prompt,
// whose row is the one before them. Errors: as ScanRow; a token outside the row.
Status RawLogprobs(std::span<const float> logits, int32_t chosen, int64_t top_count,
                   RowScratch& scratch, TokenLogprobs& out);

}  // namespace deepinfer
