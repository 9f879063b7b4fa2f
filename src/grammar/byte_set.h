// A set of byte values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace deepinfer::grammar {

struct ByteSet {
  std::array<uint64_t, 4> words{};

  void Add(uint32_t byte) { words[byte >> 6] |= uint64_t{1} << (byte & 63); }
  void AddRange(uint32_t first, uint32_t last) {
    for (uint32_t word = first >> 6; word <= last >> 6; ++word) {
      const uint32_t low = word == first >> 6 ? first & 63 : 0;
      const uint32_t high = word == last >> 6 ? last & 63 : 63;
      words[word] |= (~uint64_t{0} >> (63 - high)) & (~uint64_t{0} << low);
    }
  }
  bool Contains(uint32_t byte) const { return (words[byte >> 6] >> (byte & 63)) & 1; }
  friend bool operator==(const ByteSet&, const ByteSet&) = default;
  bool Intersects(const ByteSet& other) const {
    uint64_t both = 0;
    for (size_t i = 0; i < words.size(); ++i) both |= words[i] & other.words[i];
    return both != 0;
  }
  // Whether this changed the set.
  bool Merge(const ByteSet& other) {
    bool grew = false;
    for (size_t i = 0; i < words.size(); ++i) {
      grew |= (other.words[i] & ~words[i]) != 0;
      words[i] |= other.words[i];
    }
    return grew;
  }
};

}  // namespace deepinfer::grammar
