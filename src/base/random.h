// Counter-based random bits: the value at a counter depends on the key and the counter alone, so
// any part of a sequence can be made by any thread in any order. Not for cryptography.
#pragma once

#include <cstdint>
#include <string_view>

namespace deepinfer {

// A bijection of 64-bit words in which every input bit changes about half of the output bits.
constexpr uint64_t MixBits(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  return x;
}

// Word `counter` of the sequence that belongs to `key`.
constexpr uint64_t RandomBits(uint64_t key, uint64_t counter) {
  // The odd multiplier (2^64 over the golden ratio) spreads neighbouring counters.
  return MixBits(key + (counter + 1) * 0x9e3779b97f4a7c15u);
}

// The key of a named sequence under a seed.
constexpr uint64_t RandomKey(uint64_t seed, std::string_view name) {
  uint64_t key = MixBits(seed ^ 0x6a09e667f3bcc908u);
  for (const char c : name) key = MixBits(key ^ static_cast<unsigned char>(c)) + 1;
  return MixBits(key);
}

}  // namespace deepinfer
