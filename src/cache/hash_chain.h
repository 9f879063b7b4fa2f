// Identity of a block's content: a hash of everything that its bytes depend on, which are its
// tokens and all tokens before them. Source: spec algorithms section 7.1.
//
// Nothing compares tokens after a hash has matched. Among n blocks the chance that any two collide
// is about n^2 / 2^129: 1e-21 for a billion blocks, far below that of a memory error. That holds
// for prompts that nobody makes up to collide: the hash (XXH3) is no cryptographic one. Clients
// that must not share a cache have salts of their own that others do not know.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace deepinfer::cache {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// The parent of a sequence's first block. Sequences of different salts never share blocks.
Hash128 NamespaceHash(std::string_view salt);

// The hash of a block of `tokens` whose predecessor has the hash `parent`.
Hash128 ChainHash(const Hash128& parent, std::span<const int32_t> tokens);

// Appends to `chain` the hashes of those full blocks of `tokens` that it does not have yet.
void ExtendChain(const Hash128& root, std::span<const int32_t> tokens, int64_t block_tokens,
                 std::vector<Hash128>& chain);

}  // namespace deepinfer::cache
