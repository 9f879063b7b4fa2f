#include "grammar/automaton.h"

#include <algorithm>
#include <array>
#include <utility>

namespace deepinfer::grammar {

uint32_t Dfa::Next(uint32_t state, uint32_t symbol) const {
  const std::span<const Edge> all = edges(state);
  const auto edge = std::lower_bound(
      all.begin(), all.end(), symbol,
      [](const Edge& candidate, uint32_t value) { return candidate.last < value; });
  return edge != all.end() && edge->first <= symbol ? edge->target : kDead;
}

bool Dfa::Accepts(std::span<const uint32_t> word) const {
  uint32_t state = 0;
  for (const uint32_t symbol : word) {
    state = Next(state, symbol);
    if (state == kDead) return false;
  }
  return accepting_[state];
}

bool Dfa::Accepts(std::string_view bytes) const {
  uint32_t state = 0;
  for (const char c : bytes) {
    state = Next(state, static_cast<uint8_t>(c));
    if (state == kDead) return false;
  }
  return accepting_[state];
}

Dfa Dfa::Builder() {
  Dfa dfa;
  dfa.begin_ = {0};
  dfa.accepting_.clear();
  return dfa;
}

void Dfa::AppendState(bool accepting, std::span<const Edge> edges) {
  for (const Edge& edge : edges) {
    Edge* const last =
        edges_.size() > begin_.back() ? &edges_.back() : nullptr;  // of this state, so far
    if (last != nullptr && last->target == edge.target && last->last + 1 == edge.first) {
      last->last = edge.last;
    } else {
      edges_.push_back(edge);
    }
  }
  begin_.push_back(static_cast<uint32_t>(edges_.size()));
  accepting_.push_back(accepting);
}

void Nfa::AddDfa(uint32_t from, const Dfa& dfa, uint32_t to) {
  const uint32_t base = static_cast<uint32_t>(num_states());
  for (uint32_t state = 0; state < dfa.num_states(); ++state) AddState();
  AddEmptyMove(from, base);
  for (uint32_t state = 0; state < dfa.num_states(); ++state) {
    for (const Edge& edge : dfa.edges(state)) {
      AddEdge(base + state, edge.first, edge.last, base + edge.target);
    }
    if (dfa.accepting(state)) AddEmptyMove(base + state, to);
  }
}

Dfa Trim(Dfa dfa) {
  const uint32_t n = static_cast<uint32_t>(dfa.num_states());
  // States that lead to acceptance, backwards along the edges.
  std::vector<uint32_t> counts(n + 1, 0);
  for (uint32_t state = 0; state < n; ++state) {
    for (const Edge& edge : dfa.edges(state)) ++counts[edge.target + 1];
  }
  for (uint32_t state = 0; state < n; ++state) counts[state + 1] += counts[state];
  std::vector<uint32_t> sources(counts[n]);
  std::vector<uint32_t> fill(counts.begin(), counts.end() - 1);
  for (uint32_t state = 0; state < n; ++state) {
    for (const Edge& edge : dfa.edges(state)) sources[fill[edge.target]++] = state;
  }
  std::vector<bool> useful(n, false);
  std::vector<uint32_t> stack;
  for (uint32_t state = 0; state < n; ++state) {
    if (!dfa.accepting(state)) continue;
    useful[state] = true;
    stack.push_back(state);
  }
  while (!stack.empty()) {
    const uint32_t state = stack.back();
    stack.pop_back();
    for (uint32_t i = counts[state]; i < counts[state + 1]; ++i) {
      if (useful[sources[i]]) continue;
      useful[sources[i]] = true;
      stack.push_back(sources[i]);
    }
  }
  // Renumber what is reachable through useful states, breadth first.
  std::vector<uint32_t> number(n, Dfa::kDead);
  std::vector<uint32_t> order = {0};
  number[0] = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    for (const Edge& edge : dfa.edges(order[i])) {
      if (!useful[edge.target] || number[edge.target] != Dfa::kDead) continue;
      number[edge.target] = static_cast<uint32_t>(order.size());
      order.push_back(edge.target);
    }
  }
  const bool all_useful = std::find(useful.begin(), useful.end(), false) == useful.end();
  if (all_useful && order.size() == n) return dfa;
  Dfa result = Dfa::Builder();
  std::vector<Edge> edges;
  for (const uint32_t state : order) {
    edges.clear();
    for (const Edge& edge : dfa.edges(state)) {
      if (useful[edge.target]) edges.push_back({edge.first, edge.last, number[edge.target]});
    }
    result.AppendState(dfa.accepting(state), edges);
  }
  return result;
}

Dfa EmptyWordDfa() {
  Dfa dfa = Dfa::Builder();
  dfa.AppendState(true, {});
  return dfa;
}

Dfa WordDfa(std::span<const uint32_t> symbols) {
  Dfa dfa = Dfa::Builder();
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    const Edge edge{symbols[i], symbols[i], i + 1};
    dfa.AppendState(false, std::span(&edge, 1));
  }
  dfa.AppendState(true, {});
  return dfa;
}

Dfa WordDfa(std::string_view bytes) {
  std::vector<uint32_t> symbols;
  symbols.reserve(bytes.size());
  for (const char c : bytes) symbols.push_back(static_cast<uint8_t>(c));
  return WordDfa(symbols);
}

Dfa SetDfa(const CharSet& set) {
  if (set.empty()) return Dfa();
  std::vector<Edge> edges;
  for (const SymbolRange& range : set.ranges()) edges.push_back({range.first, range.last, 1});
  Dfa dfa = Dfa::Builder();
  dfa.AppendState(false, edges);
  dfa.AppendState(true, {});
  return dfa;
}

Dfa StarDfa(const CharSet& set) {
  std::vector<Edge> edges;
  for (const SymbolRange& range : set.ranges()) edges.push_back({range.first, range.last, 0});
  Dfa dfa = Dfa::Builder();
  dfa.AppendState(true, edges);
  return dfa;
}

namespace {

// Code points whose UTF-8 has `length` bytes: the largest one.
constexpr std::array<uint32_t, 4> kLastOfLength = {0x7f, 0x7ff, 0xffff, kMaxCodePoint};

// Encodes code points of one length that share all bytes before `length` trailing bytes.
// `value` bits above those are already written.
void AddContinuation(Nfa& nfa, uint32_t first, uint32_t last, int trailing, uint32_t lead_marker,
                     uint32_t from, uint32_t to) {
  if (trailing == 0) {
    nfa.AddEdge(from, lead_marker | first, lead_marker | last, to);
    return;
  }
  const int shift = 6 * trailing;
  const uint32_t mask = (uint32_t{1} << shift) - 1;
  uint32_t next = first;
  while (next <= last) {
    const uint32_t head = next >> shift;
    // As many heads as have all their tails in the range go into one edge; a partial one alone.
    uint32_t last_head = head;
    if ((next & mask) == 0 && (last >> shift) > head) {
      last_head = (last & mask) == mask ? last >> shift : (last >> shift) - 1;
    }
    const uint32_t end = std::min(last, (last_head << shift) | mask);
    const uint32_t middle = nfa.AddState();
    nfa.AddEdge(from, lead_marker | head, lead_marker | last_head, middle);
    const uint32_t tail_first = last_head > head ? 0 : next & mask;
    const uint32_t tail_last = last_head > head ? mask : end & mask;
    AddContinuation(nfa, tail_first, tail_last, trailing - 1, 0x80, middle, to);
    next = end + 1;
  }
}

}  // namespace

void AddUtf8(Nfa& nfa, uint32_t first, uint32_t last, uint32_t from, uint32_t to) {
  if (first <= 0xdfff && last >= 0xd800) {
    if (first < 0xd800) AddUtf8(nfa, first, 0xd7ff, from, to);
    if (last > 0xdfff) AddUtf8(nfa, 0xe000, last, from, to);
    return;
  }
  constexpr std::array<uint32_t, 4> kLeadMarker = {0, 0xc0, 0xe0, 0xf0};
  for (size_t length = 0; length < kLastOfLength.size(); ++length) {
    const uint32_t low = length == 0 ? 0 : kLastOfLength[length - 1] + 1;
    const uint32_t a = std::max(first, low);
    const uint32_t b = std::min(last, kLastOfLength[length]);
    if (a <= b) AddContinuation(nfa, a, b, static_cast<int>(length), kLeadMarker[length], from, to);
  }
}

}  // namespace deepinfer::grammar
