// Union, concatenation, repetition, products and encodings of automata.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "grammar/automaton.h"

namespace deepinfer::grammar {
namespace {

Result<Dfa> DeterminiseMinimise(const Nfa& nfa, Budget& budget) {
  DI_ASSIGN_OR_RETURN(const Dfa dfa, Determinise(nfa, budget));
  return Minimise(dfa, budget);
}

// Pairs of states, the second one possibly kDead; created in breadth-first order.
class PairTable {
 public:
  uint32_t Number(uint32_t a, uint32_t b) {
    const auto [entry, is_new] =
        numbers_.emplace(uint64_t{a} << 32 | b, static_cast<uint32_t>(pairs_.size()));
    if (is_new) pairs_.push_back({a, b});
    return entry->second;
  }
  size_t size() const { return pairs_.size(); }
  std::pair<uint32_t, uint32_t> pair(size_t number) const { return pairs_[number]; }

 private:
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::vector<std::pair<uint32_t, uint32_t>> pairs_;
};

// Edges of the pair: where only `a` has one, b's target is kDead if `keep_unmatched`, else the
// symbols are dropped.
void PairEdges(std::span<const Edge> a, std::span<const Edge> b, bool keep_unmatched,
               PairTable& table, std::vector<Edge>& out) {
  out.clear();
  size_t j = 0;
  for (const Edge& edge : a) {
    uint64_t next = edge.first;
    while (next <= edge.last) {
      while (j < b.size() && b[j].last < next) ++j;
      const bool matched = j < b.size() && b[j].first <= next;
      uint64_t last = edge.last;
      if (matched) {
        last = std::min<uint64_t>(last, b[j].last);
      } else if (j < b.size()) {
        last = std::min<uint64_t>(last, uint64_t{b[j].first} - 1);
      }
      if (matched || keep_unmatched) {
        out.push_back({static_cast<uint32_t>(next), static_cast<uint32_t>(last),
                       table.Number(edge.target, matched ? b[j].target : Dfa::kDead)});
      }
      next = last + 1;
    }
  }
}

enum class ProductKind { kIntersection, kDifference };

Result<Dfa> Product(const Dfa& a, const Dfa& b, ProductKind kind, Budget& budget) {
  const bool difference = kind == ProductKind::kDifference;
  PairTable table;
  table.Number(0, 0);
  Dfa dfa = Dfa::Builder();
  std::vector<Edge> edges;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto [state_a, state_b] = table.pair(i);
    const bool dead_b = state_b == Dfa::kDead;
    const bool in_b = !dead_b && b.accepting(state_b);
    PairEdges(a.edges(state_a), dead_b ? std::span<const Edge>() : b.edges(state_b), difference,
              table, edges);
    dfa.AppendState(a.accepting(state_a) && in_b != difference, edges);
    const size_t other = dead_b ? 0 : b.edges(state_b).size();
    DI_RETURN_IF_ERROR(
        budget.Charge(a.edges(state_a).size() + other + edges.size() + 1, table.size()));
  }
  return Minimise(Trim(std::move(dfa)), budget);
}

}  // namespace

Result<Dfa> Union(std::span<const Dfa> parts, Budget& budget) {
  if (parts.size() == 1) return parts[0];
  Nfa nfa;
  const uint32_t end = nfa.AddState();
  nfa.SetAccepting(end);
  for (const Dfa& part : parts) nfa.AddDfa(0, part, end);
  DI_RETURN_IF_ERROR(budget.Charge(nfa.num_edges()));
  return DeterminiseMinimise(nfa, budget);
}

Result<Dfa> Concat(std::span<const Dfa> parts, Budget& budget) {
  if (parts.size() == 1) return parts[0];
  Nfa nfa;
  uint32_t at = 0;
  for (const Dfa& part : parts) {
    const uint32_t next = nfa.AddState();
    nfa.AddDfa(at, part, next);
    at = next;
  }
  nfa.SetAccepting(at);
  DI_RETURN_IF_ERROR(budget.Charge(nfa.num_edges()));
  return DeterminiseMinimise(nfa, budget);
}

Result<Dfa> Repeat(const Dfa& body, uint32_t min, uint32_t max, Budget& budget) {
  const uint64_t copies = max == kUnbounded ? uint64_t{min} + 1 : max;
  const uint64_t cost = copies * (body.num_states() + 1);
  DI_RETURN_IF_ERROR(budget.Charge(copies * (body.num_edges() + 1), cost));
  Nfa nfa;
  uint32_t at = 0;
  const uint32_t end = nfa.AddState();
  nfa.SetAccepting(end);
  for (uint32_t i = 0; i < (max == kUnbounded ? min : max); ++i) {
    if (i >= min) nfa.AddEmptyMove(at, end);
    const uint32_t next = nfa.AddState();
    nfa.AddDfa(at, body, next);
    at = next;
  }
  if (max == kUnbounded) {
    const uint32_t loop = nfa.AddState();
    nfa.AddEmptyMove(at, loop);
    nfa.AddDfa(loop, body, loop);
    at = loop;
  }
  nfa.AddEmptyMove(at, end);
  return DeterminiseMinimise(nfa, budget);
}

Result<Dfa> Intersect(const Dfa& a, const Dfa& b, Budget& budget) {
  return Product(a, b, ProductKind::kIntersection, budget);
}

Result<Dfa> Difference(const Dfa& a, const Dfa& b, Budget& budget) {
  return Product(a, b, ProductKind::kDifference, budget);
}

Result<Dfa> WithLength(const Dfa& a, uint32_t min, uint32_t max, Budget& budget) {
  if (min == 0 && max == kUnbounded) return a;
  const uint64_t states = max == kUnbounded ? uint64_t{min} + 1 : uint64_t{max} + 1;
  DI_RETURN_IF_ERROR(budget.Charge(states, states));
  Dfa lengths = Dfa::Builder();
  for (uint32_t length = 0; length < states; ++length) {
    const bool last = length + 1 == states;
    const Edge edge{0, ~uint32_t{0}, last ? length : length + 1};
    const bool stop = last && max != kUnbounded;
    lengths.AppendState(length >= min, stop ? std::span<const Edge>() : std::span(&edge, 1));
  }
  return Product(a, lengths, ProductKind::kIntersection, budget);
}

Result<bool> Intersects(const Dfa& a, const Dfa& b, Budget& budget) {
  DI_ASSIGN_OR_RETURN(const Dfa both, Intersect(a, b, budget));
  return !both.empty();
}

Result<Dfa> Encode(const Dfa& dfa, const EdgeEncoder& encode, Budget& budget) {
  DI_RETURN_IF_ERROR(budget.Charge(dfa.num_edges(), dfa.num_states()));
  Nfa nfa;
  while (nfa.num_states() < dfa.num_states()) nfa.AddState();
  for (uint32_t state = 0; state < dfa.num_states(); ++state) {
    if (dfa.accepting(state)) nfa.SetAccepting(state);
    for (const Edge& edge : dfa.edges(state)) {
      encode(nfa, edge.first, edge.last, state, edge.target);
    }
  }
  return DeterminiseMinimise(nfa, budget);
}

bool HasOnlySymbols(const Dfa& dfa, const CharSet& symbols) {
  const auto ranges = symbols.ranges();
  for (uint32_t state = 0; state < dfa.num_states(); ++state) {
    for (const Edge& edge : dfa.edges(state)) {
      const bool inside = std::any_of(ranges.begin(), ranges.end(), [&](const SymbolRange& range) {
        return range.first <= edge.first && edge.last <= range.last;
      });
      if (!inside) return false;
    }
  }
  return true;
}

Result<Dfa> EncodeUtf8(const Dfa& dfa, Budget& budget) {
  static const CharSet ascii = {{0, 0x7f}};
  if (HasOnlySymbols(dfa, ascii)) return dfa;
  return Encode(dfa, AddUtf8, budget);
}

}  // namespace deepinfer::grammar
