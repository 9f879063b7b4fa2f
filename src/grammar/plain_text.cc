// Finding the states that take any plain text.
#include <algorithm>
#include <array>

#include "grammar/state_mask.h"

namespace deepinfer::grammar {
namespace {

// More states between characters than this are not followed.
constexpr size_t kMaxBoundaries = 32;

struct ByteRange {
  uint8_t first;
  uint8_t last;
};
// A family of UTF-8 sequences: ranges of the bytes, the lead byte first.
struct Sequence {
  uint32_t length;
  std::array<ByteRange, 4> bytes;
};
constexpr ByteRange kTail = {0x80, 0xbf};
// The plain characters: U+0020 and above without '"' and '\'.
constexpr std::array<Sequence, 11> kPlainSequences = {{
    {1, {{{0x20, 0x21}}}},
    {1, {{{0x23, 0x5b}}}},
    {1, {{{0x5d, 0x7f}}}},
    {2, {{{0xc2, 0xdf}, kTail}}},
    {3, {{{0xe0, 0xe0}, {0xa0, 0xbf}, kTail}}},
    {3, {{{0xe1, 0xec}, kTail, kTail}}},
    {3, {{{0xed, 0xed}, {0x80, 0x9f}, kTail}}},
    {3, {{{0xee, 0xef}, kTail, kTail}}},
    {4, {{{0xf0, 0xf0}, {0x90, 0xbf}, kTail, kTail}}},
    {4, {{{0xf1, 0xf3}, kTail, kTail, kTail}}},
    {4, {{{0xf4, 0xf4}, {0x80, 0x8f}, kTail, kTail}}},
}};

class PlainClassifier {
 public:
  explicit PlainClassifier(const Program& program) : program_(program) {}

  PlainKind Run(uint32_t state) {
    boundaries_ = {state};
    for (size_t i = 0; i < boundaries_.size(); ++i) {
      for (const Sequence& sequence : kPlainSequences) {
        if (!Follow(boundaries_[i], sequence, 0)) return PlainKind::kNone;
      }
    }
    if (counted_ && free_) return PlainKind::kNone;
    return counted_ ? PlainKind::kCounted : PlainKind::kFree;
  }

 private:
  // Whether all sequences of the family, from their byte `depth` on, have a way from the state.
  bool Follow(uint32_t state, const Sequence& sequence, uint32_t depth) {
    if (depth == sequence.length) {
      if (std::find(boundaries_.begin(), boundaries_.end(), state) == boundaries_.end()) {
        if (boundaries_.size() == kMaxBoundaries) return false;
        boundaries_.push_back(state);
      }
      return true;
    }
    uint32_t next = sequence.bytes[depth].first;
    for (const ByteEdge& edge : program_.bytes(state)) {
      if (next > sequence.bytes[depth].last) break;
      if (edge.last < next) continue;
      if (edge.first > next || !CheckOps(edge.ops, depth)) return false;
      if (!Follow(edge.target, sequence, depth + 1)) return false;
      next = uint32_t{edge.last} + 1;
    }
    return next > sequence.bytes[depth].last;
  }

  // Counting characters is all that may happen on the way, and on their first bytes.
  bool CheckOps(uint32_t list, uint32_t depth) {
    const std::vector<Op>& ops = program_.op_lists[list];
    if (ops.empty()) {
      if (depth == 0) free_ = true;
      return true;
    }
    if (ops.size() > 1 || ops[0].kind != OpKind::kAgain || depth > 0) return false;
    // Without an upper limit every character may come.
    const bool bounded = program_.loops[ops[0].object].max != kUnbounded;
    (bounded ? counted_ : free_) = true;
    return true;
  }

  const Program& program_;
  std::vector<uint32_t> boundaries_;
  bool counted_ = false;
  bool free_ = false;
};

}  // namespace

PlainKind ClassifyPlain(const Program& program, uint32_t state) {
  return PlainClassifier(program).Run(state);
}

}  // namespace deepinfer::grammar
