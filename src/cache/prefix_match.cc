#include "cache/prefix_match.h"

#include <algorithm>

namespace deepinfer::cache {

PrefixHit FindHit(const PrefixIndex& index, const MatchRules& rules, std::span<const Hash128> chain,
                  int64_t total_tokens, int64_t prompt_tokens) {
  if (rules.mode == PrefixMode::kOff) return {};
  const int64_t replay = rules.mode == PrefixMode::kFast ? rules.window_tokens : 0;
  int64_t limit = total_tokens - 1;
  if (rules.keep_tokens > 0) limit = std::min(limit, prompt_tokens - rules.keep_tokens + replay);
  const int64_t most =
      std::min(std::ssize(chain), std::max<int64_t>(limit, 0) / rules.block_tokens);
  int64_t blocks = index.CountCached(chain.first(most));
  const int64_t shared = rules.mode == PrefixMode::kDeterministic ? blocks * rules.block_tokens : 0;
  if (rules.mode == PrefixMode::kDeterministic) {
    while (blocks > 0 && !index.HasSnapshot(chain[blocks - 1])) --blocks;
  }
  const int64_t tokens = blocks * rules.block_tokens;
  if (tokens < rules.min_hit_tokens || tokens <= replay) return {0, 0, shared};
  return {tokens, tokens - replay, shared};
}

}  // namespace deepinfer::cache
