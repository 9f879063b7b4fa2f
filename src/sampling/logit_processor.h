// What changes logits before the temperature. Source: spec algorithms sections 4.1 and 9.4.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "sampling/random_stream.h"
#include "sampling/sampling_params.h"
#include "sampling/token_history.h"

namespace deepinfer {

// Everything a draw depends on beside the parameters. Borrows all it points to.
struct SampleRow {
  std::span<const float> logits = {};  // [vocabulary]: raw; ids of padding are not part of it
  int64_t position = 0;                // absolute, of the token to be drawn
  // The request up to this row, drafts before it included. May be absent without penalties and
  // min_tokens.
  const TokenHistory* history = nullptr;
  // [ceil(vocabulary / 32)], bit id % 32 of word id / 32: 1 allows the token; empty: all allowed.
  std::span<const uint32_t> grammar_mask = {};
  int32_t eos_token = -1;  // kept back by min_tokens; -1: none
  Stream stream = Stream::kTarget;
};

// Whether ApplyLogitProcessors would change anything, so that the row has to be copied.
bool ChangesLogits(const SampleRow& row, const SamplingParams& params);

// In this order: allowed_token_ids, bad_token_ids, logit_bias, end tokens while fewer than
// min_tokens are drawn, the grammar mask, the penalties: repetition (z > 0: z / r, else z * r),
// frequency (z - f * count), presence (z - g), each rounded to fp32.
// `logits` is a copy of row.logits. Errors: a history or mask that is missing or too short, a token
// id outside the row.
Status ApplyLogitProcessors(const SampleRow& row, const SamplingParams& params,
                            std::span<float> logits);

}  // namespace deepinfer
