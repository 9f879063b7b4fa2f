#include "tokenizer/byte_pair_encoder.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <queue>

namespace deepinfer {
namespace {

// Pieces up to this many bytes are merged by scanning all pairs for the smallest rank: quadratic,
// but in a few cache lines and without a heap. Nearly all words are shorter. At most 64, the bits
// of a word.
constexpr size_t kShortPieceBytes = 48;

constexpr uint64_t PairOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 24 | static_cast<uint64_t>(right);
}

// A neighbour pair that may merge. Ranks stand above positions, so the heap's order is the
// merging order; a position is the byte offset where the left token begins.
constexpr int kPositionBits = 40;
constexpr uint64_t CandidateOf(int32_t rank, size_t position) {
  return static_cast<uint64_t>(rank) << kPositionBits | position;
}

}  // namespace

inline size_t BytePairEncoder::FindSlot(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  size_t i = (pair * 0x9e3779b97f4a7c15u >> 32) & mask;
  while (slots_[i].pair != pair && slots_[i].pair != kFreeSlot) i = (i + 1) & mask;
  return i;
}

inline BytePairEncoder::Merge BytePairEncoder::FindMerge(int32_t left, int32_t right) const {
  return slots_[FindSlot(PairOf(left, right))].merge;
}

BytePairEncoder::BytePairEncoder(const std::array<int32_t, 256>& byte_tokens,
                                 std::span<const MergeRule> rules)
    : byte_tokens_(byte_tokens),
      byte_merges_(256 * 256),
      slots_(std::bit_ceil(std::max<size_t>(16, rules.size() * 2))) {
  for (size_t rank = 0; rank < rules.size(); ++rank) {
    const uint64_t pair = PairOf(rules[rank].left, rules[rank].right);
    slots_[FindSlot(pair)] = {pair, {static_cast<int32_t>(rank), rules[rank].merged}};
  }
  for (size_t left = 0; left < 256; ++left) {
    for (size_t right = 0; right < 256; ++right) {
      byte_merges_[left * 256 + right] = FindMerge(byte_tokens_[left], byte_tokens_[right]);
    }
  }
}

void BytePairEncoder::Encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (piece.empty()) return;
  if (piece.size() <= kShortPieceBytes) {
    EncodeShort(piece, ids);
  } else {
    EncodeLong(piece, ids);
  }
}

void BytePairEncoder::EncodeShort(std::string_view piece, std::vector<int32_t>& ids) const {
  // A token stands where its first byte does. candidates[i] is (rank, i) of the merge of the token
  // at i with the next one, so the smallest candidate is the next merge.
  constexpr uint32_t kNoCandidate = ~uint32_t{0};
  int32_t tokens[kShortPieceBytes];
  int32_t merged[kShortPieceBytes];
  uint32_t candidates[kShortPieceBytes];
  const size_t size = piece.size();
  uint64_t begins = ~uint64_t{0} >> (64 - size);  // where tokens stand
  const auto set_merge = [&](size_t i, Merge merge) {
    merged[i] = merge.merged;
    candidates[i] =
        merge.rank == kNoMerge ? kNoCandidate : static_cast<uint32_t>(merge.rank) << 8 | i;
  };
  for (size_t i = 0; i < size; ++i) tokens[i] = byte_tokens_[static_cast<uint8_t>(piece[i])];
  for (size_t i = 0; i + 1 < size; ++i) set_merge(i, FindByteMerge(piece[i], piece[i + 1]));
  candidates[size - 1] = kNoCandidate;
  while (true) {
    uint32_t best = kNoCandidate;
    for (size_t i = 0; i < size; ++i) best = std::min(best, candidates[i]);
    if (best == kNoCandidate) break;
    const size_t left = best & 0xff;
    const uint64_t after_left = begins & (~uint64_t{1} << left);
    const uint64_t right_bit = after_left & -after_left;
    const size_t right = static_cast<size_t>(std::countr_zero(right_bit));
    tokens[left] = merged[left];
    begins ^= right_bit;
    candidates[left] = candidates[right] = kNoCandidate;
    if (const uint64_t after = after_left ^ right_bit; after != 0) {
      set_merge(left, FindMerge(tokens[left], tokens[std::countr_zero(after)]));
    }
    if (const uint64_t before = begins & ((uint64_t{1} << left) - 1); before != 0) {
      const auto previous = static_cast<size_t>(63 - std::countl_zero(before));
      set_merge(previous, FindMerge(tokens[previous], tokens[left]));
    }
  }
  for (; begins != 0; begins &= begins - 1) ids.push_back(tokens[std::countr_zero(begins)]);
}

void BytePairEncoder::EncodeLong(std::string_view piece, std::vector<int32_t>& ids) const {
  // The token that begins at a byte, linked to its neighbours; merged-away tokens have id -1.
  struct Node {
    size_t previous;
    size_t next;
    int32_t id;
    Merge merge;  // of this token with the next
  };
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<Node> nodes(piece.size());
  std::vector<uint64_t> candidates;
  for (size_t i = 0; i < piece.size(); ++i) {
    const bool has_next = i + 1 < piece.size();
    const Merge merge = has_next ? FindByteMerge(piece[i], piece[i + 1]) : Merge{};
    nodes[i] = {i == 0 ? kNone : i - 1, has_next ? i + 1 : kNone,
                byte_tokens_[static_cast<uint8_t>(piece[i])], merge};
    if (merge.rank != kNoMerge) candidates.push_back(CandidateOf(merge.rank, i));
  }
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<uint64_t>> queue(
      std::greater<uint64_t>(), std::move(candidates));
  const auto update_merge = [&](size_t i) {
    Node& node = nodes[i];
    node.merge = node.next == kNone ? Merge{} : FindMerge(node.id, nodes[node.next].id);
    if (node.merge.rank != kNoMerge) queue.push(CandidateOf(node.merge.rank, i));
  };
  while (!queue.empty()) {
    const uint64_t candidate = queue.top();
    queue.pop();
    const size_t i = candidate & ((uint64_t{1} << kPositionBits) - 1);
    Node& node = nodes[i];
    // Stale: the pair has changed since, or its left token has gone.
    if (node.id < 0 || CandidateOf(node.merge.rank, i) != candidate) continue;
    Node& right = nodes[node.next];
    node.id = node.merge.merged;
    node.next = right.next;
    right.id = -1;
    if (node.next != kNone) nodes[node.next].previous = i;
    update_merge(i);
    if (node.previous != kNone) update_merge(node.previous);
  }
  for (size_t i = 0; i != kNone; i = nodes[i].next) ids.push_back(nodes[i].id);
}

}  // namespace deepinfer
