// How much of a prompt the prefix cache may serve. Source: spec algorithms section 7.2, model-v41
// section 5.3.
#pragma once

#include <cstdint>
#include <span>

#include "cache/hash_chain.h"
#include "cache/prefix_index.h"

namespace deepinfer::cache {

enum class PrefixMode {
  kOff,   // nothing is cached
  kFast,  // a hit may end at any block; the window before it is computed again, so that a hit and a
          // miss may differ in low bits
  kDeterministic,  // a hit ends where a snapshot was taken: the bytes are those of a miss
};

struct MatchRules {
  PrefixMode mode = PrefixMode::kOff;
  int64_t block_tokens = 64;
  int64_t min_hit_tokens = 256;  // less is computed instead
  int64_t window_tokens = 128;   // of the model's sliding window
  // Compact prefill runs the decoder half on this many last tokens of the prompt, so they must be
  // computed (kFast: computed or replayed). 0: prefill is exact.
  int64_t keep_tokens = 0;
};

struct PrefixHit {
  int64_t tokens = 0;  // 0: a miss. Else a multiple of block_tokens
  // First position to compute: below `tokens` in kFast, whose rows [start, tokens) rebuild windows
  // and must not write global KV.
  int64_t start = 0;
  // kDeterministic: tokens whose blocks are cached, though there may be no snapshot to begin at.
  int64_t shared = 0;
};

// The longest usable hit for a sequence of total_tokens, whose first prompt_tokens are its prompt
// (the others were generated before a preemption) and whose full blocks hash to `chain`. At least
// one token is left to compute.
PrefixHit FindHit(const PrefixIndex& index, const MatchRules& rules, std::span<const Hash128> chain,
                  int64_t total_tokens, int64_t prompt_tokens);

}  // namespace deepinfer::cache
