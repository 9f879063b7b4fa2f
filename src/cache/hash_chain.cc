#include "cache/hash_chain.h"

// The state's size, so that it can lie on the stack.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

namespace deepinfer::cache {
namespace {

Hash128 FromXxh(const XXH128_hash_t& hash) { return {hash.low64, hash.high64}; }

}  // namespace

Hash128 NamespaceHash(std::string_view salt) {
  return FromXxh(XXH3_128bits(salt.data(), salt.size()));
}

Hash128 ChainHash(const Hash128& parent, std::span<const int32_t> tokens) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, &parent, sizeof(parent));
  XXH3_128bits_update(&state, tokens.data(), tokens.size_bytes());
  return FromXxh(XXH3_128bits_digest(&state));
}

void ExtendChain(const Hash128& root, std::span<const int32_t> tokens, int64_t block_tokens,
                 std::vector<Hash128>& chain) {
  for (int64_t i = std::ssize(chain); (i + 1) * block_tokens <= std::ssize(tokens); ++i) {
    const Hash128& parent = i == 0 ? root : chain[i - 1];
    chain.push_back(ChainHash(parent, tokens.subspan(i * block_tokens, block_tokens)));
  }
}

}  // namespace deepinfer::cache
