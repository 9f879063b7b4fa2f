// What one automaton state decides about the vocabulary by itself, whatever called its rule.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "grammar/chart.h"
#include "grammar/program.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

// For tokens whose first byte one of the state's byte edges takes. Tokens that stay inside the rule
// (and the rules it calls) are accepted. Where the rule ends within a token, the rest of it is for
// the callers to decide: `exits` lists the trie nodes that such a rest would have to go through.
// Everything else is rejected.
struct StateMask {
  struct Exit {
    uint8_t byte;   // that leads to the node: the first of the rest
    uint32_t node;  // of `trie`
  };
  std::vector<uint32_t> bits;   // a mask of the vocabulary, or empty:
  std::vector<int32_t> tokens;  // then these are accepted
  std::vector<Exit> exits;      // by byte
  const TokenTrie* trie = nullptr;

  void AddTo(std::span<uint32_t> mask) const;
  size_t bytes_used() const {
    return sizeof(*this) + bits.capacity() * 4 + tokens.capacity() * 4 +
           exits.capacity() * sizeof(Exit);
  }
};

// Walks tries. Holds scratch memory and may be used again and again, with one program. Not
// thread-safe.
class StateMaskBuilder {
 public:
  // Keeps references.
  StateMaskBuilder(const Program& program, const Vocabulary& vocabulary);

  // kResourceExhausted if it takes more than max_work steps.
  Result<StateMask> Build(uint32_t state, uint64_t reg, const ByteSet& follow, uint64_t max_work);
  // Whether the last mask depends on the register that it was built with.
  bool register_read() const { return register_read_ || chart_.bottom_register_read(); }

 private:
  // The set after the bytes down to one trie node. A plain one is a single item whose state has
  // nothing but byte edges; others are ranges of the chart's items.
  struct Level {
    bool plain;
    bool closed;
    uint32_t node;
    Item item;  // if plain
    uint32_t begin;
    uint32_t end;
    Chart::Mark mark;  // before closing, then after it
    ByteSet first;     // once closed
  };
  // The 256 targets of a state; kDead, or kLookUp where operations decide.
  struct Row {
    uint32_t state;
    std::array<uint32_t, 256> next;
  };
  static constexpr uint32_t kDead = ~uint32_t{0};
  static constexpr uint32_t kLookUp = kDead - 1;

  const TokenTrie& TakeText(uint32_t state, uint64_t reg, const ByteSet& follow);
  void Walk(const TokenTrie& trie, uint64_t max_work);
  // Sets the level of trie node `index`; false if nothing is there beyond what exits_ records.
  bool Descend(uint32_t index, const TokenTrie::Node& node);
  bool DescendGeneral(uint32_t index, const TokenTrie::Node& node, Level& parent);
  bool FinishGeneral(uint32_t index, uint32_t begin, Level& level);
  const Row& RowOf(uint32_t state);
  uint32_t Target(const Item& item, uint8_t byte, uint64_t& reg);
  StateMask Collect(const TokenTrie& trie, const ByteSet& follow);

  const Program& program_;
  const Vocabulary& vocabulary_;
  Chart chart_;
  std::vector<Level> levels_;
  std::vector<Row> rows_;
  std::vector<uint32_t> bits_;
  std::vector<uint32_t> exit_nodes_;  // where the rule can end
  bool accepted_any_ = false;
  bool register_read_ = false;
  uint64_t work_ = 0;
};

// The most characters of the slice's class such that any text of so many keeps the rule running
// from the state, if no longer text of the class can come at all (kUnbounded: no text is too long).
// Nothing where it is not that simple. Sets register_read if an operation looked at the register.
std::optional<uint64_t> TextTaken(const Program& program, uint32_t state, uint64_t reg,
                                  const TextSlice& slice, const ByteSet& follow,
                                  bool& register_read);

}  // namespace deepinfer::grammar
