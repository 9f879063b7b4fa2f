// Byte pair merging of one piece of text.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace deepinfer {

// `left` followed by `right` merges to `merged`; all are ids in [0, 2^24).
struct MergeRule {
  int32_t left;
  int32_t right;
  int32_t merged;
};

// Immutable and thread-safe.
class BytePairEncoder {
 public:
  // byte_tokens[b]: the token of the single byte b. A rule's index is its rank, smaller ranks merge
  // first; of rules with the same pair the last counts. Fewer than 2^24 rules.
  BytePairEncoder(const std::array<int32_t, 256>& byte_tokens, std::span<const MergeRule> rules);

  // Appends the tokens of `piece`: beginning with one token a byte, the pair of neighbours with the
  // smallest rank, the leftmost of equals, is merged until no pair has a merge. O(n log n).
  void Encode(std::string_view piece, std::vector<int32_t>& ids) const;

 private:
  static constexpr int32_t kNoMerge = 1 << 24;

  struct Merge {
    int32_t rank = kNoMerge;
    int32_t merged = 0;
  };
  struct Slot {
    uint64_t pair = kFreeSlot;
    Merge merge;
  };
  static constexpr uint64_t kFreeSlot = ~uint64_t{0};

  size_t FindSlot(uint64_t pair) const;
  Merge FindMerge(int32_t left, int32_t right) const;
  Merge FindByteMerge(char left, char right) const {
    return byte_merges_[static_cast<uint8_t>(left) * 256u + static_cast<uint8_t>(right)];
  }
  void EncodeShort(std::string_view piece, std::vector<int32_t>& ids) const;
  void EncodeLong(std::string_view piece, std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> byte_tokens_;
  std::vector<Merge> byte_merges_;  // by (left byte, right byte)
  std::vector<Slot> slots_;         // a power of two, at most half full; linear probing
};

}  // namespace deepinfer
