#include "tokenizer/byte_pair_encoder.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <queue>

namespace deepinfer {
namespace {

// Pieces up to this many bytes are merged by scanning all pairs for the smallest rank: quadratic,
// but in a few cache lines and without a heap. Nearly all words are shorter.
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

size_t BytePairEncoder::FindSlot(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  size_t i = (pair * 0x9e3779b97f4a7c15u >> 32) & mask;
  while (slots_[i].pair != pair && slots_[i].pair != kFreeSlot) i = (i + 1) & mask;
  return i;
}

BytePairEncoder::Merge BytePairEncoder::FindMerge(int32_t left, int32_t right) const {
  return slots_[FindSlot(PairOf(left, right))].merge;
}

void BytePairEncoder::Encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (piece.size() <= kShortPieceBytes) {
    EncodeShort(piece, ids);
  } else {
    EncodeLong(piece, ids);
  }
}

void BytePairEncoder::EncodeShort(std::string_view piece, std::vector<int32_t>& ids) const {
  // merges[i] belongs to the pair (tokens[i], tokens[i + 1]).
  int32_t tokens[kShortPieceBytes];
  int32_t ranks[kShortPieceBytes];
  int32_t merged[kShortPieceBytes];
  size_t count = piece.size();
  for (size_t i = 0; i < count; ++i) tokens[i] = byte_tokens_[static_cast<uint8_t>(piece[i])];
  const auto set_merge = [&](size_t i, Merge merge) {
    ranks[i] = merge.rank;
    merged[i] = merge.merged;
  };
  for (size_t i = 0; i + 1 < count; ++i) set_merge(i, FindByteMerge(piece[i], piece[i + 1]));
  while (count > 1) {
    const size_t best = static_cast<size_t>(std::min_element(ranks, ranks + count - 1) - ranks);
    if (ranks[best] == kNoMerge) break;
    tokens[best] = merged[best];
    --count;
    std::copy(tokens + best + 2, tokens + count + 1, tokens + best + 1);
    if (best + 1 < count) {
      std::copy(ranks + best + 2, ranks + count, ranks + best + 1);
      std::copy(merged + best + 2, merged + count, merged + best + 1);
      set_merge(best, FindMerge(tokens[best], tokens[best + 1]));
    }
    if (best > 0) set_merge(best - 1, FindMerge(tokens[best - 1], tokens[best]));
  }
  ids.insert(ids.end(), tokens, tokens + count);
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
