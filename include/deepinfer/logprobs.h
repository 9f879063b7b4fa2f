// Log-probabilities of tokens. Which logits they are of is an option of the engine
// (docs/sampling.md, "Log-probabilities").
#pragma once

#include <cstdint>
#include <vector>

namespace deepinfer {

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
  friend bool operator==(const TokenLogprob&, const TokenLogprob&) = default;
};

struct TokenLogprobs {
  TokenLogprob chosen;
  int64_t rank = 0;  // of the chosen token, from 1; equal logits rank by id
  // The best tokens, best first, lower ids first among equal ones; fewer where fewer have a
  // probability above 0.
  std::vector<TokenLogprob> top;
  friend bool operator==(const TokenLogprobs&, const TokenLogprobs&) = default;
};

}  // namespace deepinfer
