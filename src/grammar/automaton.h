// Finite automata over 32-bit symbols, and the algebra of regular languages on them.
//
// Three alphabets share them: code points (what patterns speak of; the algebra is exact there),
// bytes (after EncodeUtf8 or another encoding) and, inside the compiler, bytes plus rule calls.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/char_set.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

struct Edge {
  uint32_t first;  // symbols first to last lead to target
  uint32_t last;
  uint32_t target;

  friend bool operator==(const Edge&, const Edge&) = default;
};

// A deterministic automaton. State 0 is the start; a symbol without an edge rejects. Every result
// of this header's functions is trimmed: each state is reachable and leads to an accepting one
// (state 0 alone is exempt). A value; cheap to move.
class Dfa {
 public:
  // The empty language.
  Dfa() : begin_{0, 0}, accepting_{false} {}

  size_t num_states() const { return accepting_.size(); }
  size_t num_edges() const { return edges_.size(); }
  bool accepting(uint32_t state) const { return accepting_[state]; }
  // Sorted by symbol, disjoint; neighbours that touch have different targets.
  std::span<const Edge> edges(uint32_t state) const {
    return std::span(edges_).subspan(begin_[state], begin_[state + 1] - begin_[state]);
  }
  bool empty() const { return !accepting_[0] && edges_.empty(); }
  bool accepts_empty() const { return accepting_[0]; }

  static constexpr uint32_t kDead = ~uint32_t{0};
  uint32_t Next(uint32_t state, uint32_t symbol) const;
  // Whether the word is in the language.
  bool Accepts(std::span<const uint32_t> word) const;
  bool Accepts(std::string_view bytes) const;

  // Building: states in order, each with its sorted disjoint edges (targets may come later).
  // A fresh builder has no state; Trim() afterwards makes the promises above hold.
  static Dfa Builder();
  void AppendState(bool accepting, std::span<const Edge> edges);

 private:
  std::vector<uint32_t> begin_;  // num_states + 1
  std::vector<Edge> edges_;
  std::vector<bool> accepting_;
};

// A nondeterministic automaton with empty moves, for building by parts. State 0 is the start.
class Nfa {
 public:
  Nfa() { AddState(); }

  uint32_t AddState() {
    accepting_.push_back(false);
    return static_cast<uint32_t>(accepting_.size()) - 1;
  }
  void AddEdge(uint32_t from, uint32_t first, uint32_t last, uint32_t to) {
    moves_.push_back({from, {first, last, to}});
  }
  void AddEmptyMove(uint32_t from, uint32_t to) { empty_moves_.push_back({from, to}); }
  void SetAccepting(uint32_t state) { accepting_[state] = true; }
  // Copies the automaton between two states: a word of `dfa` leads from `from` to `to`.
  void AddDfa(uint32_t from, const Dfa& dfa, uint32_t to);

  size_t num_states() const { return accepting_.size(); }
  size_t num_edges() const { return moves_.size() + empty_moves_.size(); }

 private:
  friend class SubsetConstruction;
  struct Move {
    uint32_t from;
    Edge edge;
  };
  struct EmptyMove {
    uint32_t from;
    uint32_t to;
  };
  std::vector<Move> moves_;
  std::vector<EmptyMove> empty_moves_;
  std::vector<bool> accepting_;
};

Result<Dfa> Determinise(const Nfa& nfa, Budget& budget);
// Merges equivalent states. Exactly minimal unless equivalent states lie on different cycles of
// more than one state, which then may stay apart.
Result<Dfa> Minimise(const Dfa& dfa, Budget& budget);
// Drops states that are not reachable or lead nowhere.
Dfa Trim(Dfa dfa);

Dfa EmptyWordDfa();                   // the language of the empty word
Dfa WordDfa(std::string_view bytes);  // one word of byte symbols
Dfa WordDfa(std::span<const uint32_t> symbols);
Dfa SetDfa(const CharSet& set);  // words of one symbol
// Every word over the symbols of `set`.
Dfa StarDfa(const CharSet& set);

// The algebra. Results are minimised. Union, Concat and Repeat accept any number of parts.
Result<Dfa> Union(std::span<const Dfa> parts, Budget& budget);
Result<Dfa> Concat(std::span<const Dfa> parts, Budget& budget);
inline constexpr uint32_t kUnbounded = ~uint32_t{0};
Result<Dfa> Repeat(const Dfa& body, uint32_t min, uint32_t max, Budget& budget);
Result<Dfa> Intersect(const Dfa& a, const Dfa& b, Budget& budget);
// The words of a that are not in b. The complement within a class is Difference(StarDfa(class), b).
Result<Dfa> Difference(const Dfa& a, const Dfa& b, Budget& budget);
// Words of `a` with between min and max symbols (max may be kUnbounded).
Result<Dfa> WithLength(const Dfa& a, uint32_t min, uint32_t max, Budget& budget);
// Whether some word is in both.
Result<bool> Intersects(const Dfa& a, const Dfa& b, Budget& budget);

// Replaces every edge: `encode(nfa, first, last, from, to)` adds paths from `from` to `to` whose
// words are the encodings of the symbols first to last. Words of the result are the
// concatenations; they are unambiguous if the encodings form a prefix code.
using EdgeEncoder =
    std::function<void(Nfa& nfa, uint32_t first, uint32_t last, uint32_t from, uint32_t to)>;
Result<Dfa> Encode(const Dfa& dfa, const EdgeEncoder& encode, Budget& budget);
// Whether every edge lies within one range of the set.
bool HasOnlySymbols(const Dfa& dfa, const CharSet& symbols);
// The EdgeEncoder of UTF-8: bytes of the code points first to last; surrogates are left out.
void AddUtf8(Nfa& nfa, uint32_t first, uint32_t last, uint32_t from, uint32_t to);
Result<Dfa> EncodeUtf8(const Dfa& dfa, Budget& budget);

}  // namespace deepinfer::grammar
