#include "grammar/state_mask.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace deepinfer::grammar {
namespace {

constexpr size_t kNumRows = 64;  // a power of two

void SetBit(std::vector<uint32_t>& bits, int32_t token) {
  bits[static_cast<uint32_t>(token) / 32] |= uint32_t{1} << (token & 31);
}

}  // namespace

void StateMask::AddTo(std::span<uint32_t> mask) const {
  for (const int32_t token : tokens) {
    mask[static_cast<uint32_t>(token) / 32] |= uint32_t{1} << (token & 31);
  }
  for (size_t i = 0; i < bits.size(); ++i) mask[i] |= bits[i];
}

StateMaskBuilder::StateMaskBuilder(const Program& program, const Vocabulary& vocabulary)
    : program_(program),
      vocabulary_(vocabulary),
      chart_(program),
      levels_(vocabulary.max_token_bytes() + 1),
      rows_(kNumRows),
      bits_(vocabulary.mask_words(), 0) {
  for (Row& row : rows_) row.state = kDead;
}

Result<StateMask> StateMaskBuilder::Build(uint32_t state, uint64_t reg, const ByteSet& follow,
                                          uint64_t max_work) {
  std::fill(bits_.begin(), bits_.end(), 0);
  accepted_any_ = false;
  register_read_ = false;
  chart_.ResetBottomRegisterRead();
  exit_nodes_.clear();
  work_ = 0;
  chart_.CutBack({1, 0, 0});
  chart_.ResetWork();
  const TokenTrie& trie = TakeText(state, reg, follow);
  Level& root = levels_[0];
  root.plain = true;
  root.node = 0;
  root.item = {state, 0, reg};
  root.mark = chart_.mark();
  Walk(trie, max_work);
  if (work_ + chart_.work() > max_work) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "the grammar is too ambiguous: a mask takes more than {} steps", max_work);
  }
  return Collect(trie, follow);
}

// Accepts the tokens of a slice in bulk where the state takes such text, and says which trie
// remains.
const TokenTrie& StateMaskBuilder::TakeText(uint32_t state, uint64_t reg, const ByteSet& follow) {
  for (const TextSlice& slice : vocabulary_.slices()) {
    const std::optional<uint64_t> chars =
        TextTaken(program_, state, reg, slice, follow, register_read_);
    if (!chars) continue;
    slice.CopyMask(*chars, bits_);
    accepted_any_ = true;
    return slice.rest();
  }
  return vocabulary_.trie();
}

void StateMaskBuilder::Walk(const TokenTrie& trie, uint64_t max_work) {
  const uint32_t n = static_cast<uint32_t>(trie.num_nodes());
  const uint32_t budget_check = 0xfff;
  for (uint32_t i = 1; i < n;) {
    const TokenTrie::Node& node = trie.node(i);
    ++work_;
    if ((work_ & budget_check) == 0 && work_ + chart_.work() > max_work) return;
    if (!Descend(i, node)) {
      i = node.end;
      continue;
    }
    for (const int32_t token : trie.tokens(i)) {
      SetBit(bits_, token);
      accepted_any_ = true;
    }
    ++i;
  }
}

const StateMaskBuilder::Row& StateMaskBuilder::RowOf(uint32_t state) {
  Row& row = rows_[state & (kNumRows - 1)];
  if (row.state == state) return row;
  row.state = state;
  row.next.fill(kDead);
  for (const ByteEdge& edge : program_.bytes(state)) {
    std::fill(row.next.begin() + edge.first, row.next.begin() + edge.last + 1,
              edge.ops == 0 ? edge.target : kLookUp);
  }
  return row;
}

uint32_t StateMaskBuilder::Target(const Item& item, uint8_t byte, uint64_t& reg) {
  register_read_ |= item.frame == 0;
  for (const ByteEdge& edge : program_.bytes(item.state)) {
    if (edge.last < byte) continue;
    return edge.first <= byte && program_.Apply(edge.ops, reg) ? edge.target : kDead;
  }
  return kDead;
}

bool StateMaskBuilder::Descend(uint32_t index, const TokenTrie::Node& node) {
  Level& parent = levels_[node.depth - 1];
  if (!parent.plain) return DescendGeneral(index, node, parent);
  uint64_t reg = parent.item.reg;
  uint32_t next;
  const auto edges = program_.bytes(parent.item.state);
  if (edges.size() == 1 && edges[0].ops == 0) {
    next = edges[0].first <= node.byte && node.byte <= edges[0].last ? edges[0].target : kDead;
  } else {
    next = RowOf(parent.item.state).next[node.byte];
    if (next == kLookUp) next = Target(parent.item, node.byte, reg);
  }
  if (next == kDead) return false;
  Level& level = levels_[node.depth];
  level.node = index;
  level.mark = parent.mark;
  if ((program_.states[next].flags & (kAccepting | kHasSpecial)) == 0) {
    level.plain = true;
    level.item = {next, parent.item.frame, reg};
    return true;
  }
  chart_.CutBack(parent.mark);
  chart_.BeginSet();
  const uint32_t begin = chart_.size();
  chart_.AddReached({next, parent.item.frame, reg});
  return FinishGeneral(index, begin, level);
}

bool StateMaskBuilder::DescendGeneral(uint32_t index, const TokenTrie::Node& node, Level& parent) {
  if (!parent.closed) {
    chart_.CutBack(parent.mark);
    chart_.BeginSet();
    chart_.Close(parent.begin);
    parent.end = chart_.size();
    parent.mark = chart_.mark();
    parent.first = chart_.FirstBytes(parent.begin, parent.end);
    parent.closed = true;
    if (chart_.bottom_ended()) exit_nodes_.push_back(parent.node);
  }
  if (!parent.first.Contains(node.byte)) return false;
  chart_.CutBack(parent.mark);
  const uint32_t begin = chart_.size();
  if (!chart_.Step(parent.begin, parent.end, node.byte)) return false;
  Level& level = levels_[node.depth];
  level.node = index;
  return FinishGeneral(index, begin, level);
}

// The set from `begin` on is that of the trie node.
bool StateMaskBuilder::FinishGeneral(uint32_t index, uint32_t begin, Level& level) {
  if (chart_.bottom_ended()) exit_nodes_.push_back(index);
  level.mark = chart_.mark();
  const uint32_t count = chart_.size() - begin;
  level.plain = false;
  level.closed = false;
  level.begin = begin;
  if (count == 1) {
    level.item = chart_.item(begin);
    level.plain = (program_.states[level.item.state].flags & (kAccepting | kHasSpecial)) == 0;
    if (level.plain) level.mark.items = begin;
  }
  return count > 0 || chart_.bottom_ended();
}

StateMask StateMaskBuilder::Collect(const TokenTrie& trie, const ByteSet& follow) {
  StateMask mask;
  mask.trie = &trie;
  if (accepted_any_) {
    size_t count = 0;
    for (const uint32_t word : bits_) count += static_cast<size_t>(std::popcount(word));
    if (count > bits_.size() / 2) {
      mask.bits = bits_;
    } else {
      mask.tokens.reserve(count);
      for (size_t i = 0; i < bits_.size(); ++i) {
        for (uint32_t word = bits_[i]; word != 0; word &= word - 1) {
          mask.tokens.push_back(static_cast<int32_t>(i * 32) + std::countr_zero(word));
        }
      }
    }
  }
  for (const uint32_t node : exit_nodes_) {
    trie.ForEachChild(node, [&](uint32_t child) {
      const uint8_t byte = trie.node(child).byte;
      if (follow.Contains(byte)) mask.exits.push_back({byte, child});
    });
  }
  std::sort(mask.exits.begin(), mask.exits.end(), [](const auto& a, const auto& b) {
    return std::pair(a.byte, a.node) < std::pair(b.byte, b.node);
  });
  mask.exits.erase(std::unique(mask.exits.begin(), mask.exits.end(),
                               [](const auto& a, const auto& b) { return a.node == b.node; }),
                   mask.exits.end());
  return mask;
}

}  // namespace deepinfer::grammar
