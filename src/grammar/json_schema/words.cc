#include "grammar/json_schema/words.h"

#include <algorithm>
#include <utility>

#include "grammar/json_schema/json_node.h"
#include "grammar/utf8.h"

namespace deepinfer::grammar {
namespace {

using Word = std::vector<uint32_t>;

// The tree of sorted distinct words, minimised.
Result<Dfa> TreeDfa(std::vector<Word> words, Budget& budget) {
  if (words.empty()) return Dfa();
  std::sort(words.begin(), words.end());
  struct Node {
    bool accepting = false;
    std::vector<Edge> edges;
  };
  std::vector<Node> nodes(1);
  std::vector<uint32_t> path = {0};  // states after each symbol of the word before
  const Word* before = nullptr;
  for (const Word& word : words) {
    size_t shared = 0;
    if (before != nullptr) {
      while (shared < before->size() && shared < word.size() && (*before)[shared] == word[shared]) {
        ++shared;
      }
    }
    path.resize(shared + 1);
    for (size_t i = shared; i < word.size(); ++i) {
      const uint32_t next = static_cast<uint32_t>(nodes.size());
      nodes[path.back()].edges.push_back({word[i], word[i], next});
      nodes.emplace_back();
      path.push_back(next);
    }
    nodes[path.back()].accepting = true;
    before = &word;
    DI_RETURN_IF_ERROR(budget.Charge(word.size() + 1, nodes.size()));
  }
  Dfa dfa = Dfa::Builder();
  for (const Node& node : nodes) dfa.AppendState(node.accepting, node.edges);
  return Minimise(dfa, budget);
}

void AddPath(Nfa& nfa, std::string_view bytes, uint32_t from, uint32_t to) {
  uint32_t at = from;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint32_t next = i + 1 == bytes.size() ? to : nfa.AddState();
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    nfa.AddEdge(at, byte, byte, next);
    at = next;
  }
}

void AddCanonical(Nfa& nfa, uint32_t first, uint32_t last, uint32_t from, uint32_t to) {
  const auto is_escaped = [](uint32_t c) { return c < 0x20 || c == '"' || c == '\\'; };
  uint32_t next = first;
  while (next <= last && next <= '\\') {
    if (is_escaped(next)) {
      const char c = static_cast<char>(next);
      AddPath(nfa, CanonicalString({&c, 1}), from, to);
      ++next;
      continue;
    }
    const uint32_t stop = next < '"' ? '"' - 1u : '\\' - 1u;
    AddUtf8(nfa, next, std::min(stop, last), from, to);
    next = stop + 1;
  }
  if (next <= last) AddUtf8(nfa, next, last, from, to);
}

void CollectTexts(const Dfa& dfa, uint32_t state, std::string& text,
                  std::vector<std::string>& found, size_t max) {
  if (found.size() > max) return;
  if (dfa.accepting(state)) found.push_back(text);
  for (const Edge& edge : dfa.edges(state)) {
    for (uint64_t symbol = edge.first; symbol <= edge.last && found.size() <= max; ++symbol) {
      const size_t size = text.size();
      AppendUtf8(static_cast<uint32_t>(symbol), text);
      CollectTexts(dfa, edge.target, text, found, max);
      text.resize(size);
    }
  }
}

// Whether some path from the start comes back to a state on it.
bool HasCycle(const Dfa& dfa) {
  std::vector<uint32_t> incoming(dfa.num_states(), 0);
  for (uint32_t state = 0; state < dfa.num_states(); ++state) {
    for (const Edge& edge : dfa.edges(state)) ++incoming[edge.target];
  }
  std::vector<uint32_t> ready;
  if (incoming[0] == 0) ready.push_back(0);
  for (size_t i = 0; i < ready.size(); ++i) {
    for (const Edge& edge : dfa.edges(ready[i])) {
      if (--incoming[edge.target] == 0) ready.push_back(edge.target);
    }
  }
  return ready.size() < dfa.num_states();
}

}  // namespace

std::vector<uint32_t> CodePoints(std::string_view text) {
  std::vector<uint32_t> result;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    result.push_back(c.code_point);
    pos += std::max(c.length, 1u);
  }
  return result;
}

Result<Dfa> WordsDfa(std::vector<std::string> words, Budget& budget) {
  std::vector<Word> symbols;
  for (const std::string& word : words) {
    Word& out = symbols.emplace_back();
    for (const char c : word) out.push_back(static_cast<uint8_t>(c));
  }
  return TreeDfa(std::move(symbols), budget);
}

Result<Dfa> TextsDfa(const std::vector<std::string>& texts, Budget& budget) {
  std::vector<Word> symbols;
  for (const std::string& text : texts) symbols.push_back(CodePoints(text));
  return TreeDfa(std::move(symbols), budget);
}

std::optional<std::vector<std::string>> FiniteTexts(const Dfa& dfa, size_t max) {
  std::vector<std::string> found;
  if (dfa.empty()) return found;
  // A word longer than this would need more states on its way.
  constexpr size_t kMaxStates = 4000;
  if (dfa.num_states() > kMaxStates || HasCycle(dfa)) return std::nullopt;
  std::string text;
  CollectTexts(dfa, 0, text, found, max);
  if (found.size() > max) return std::nullopt;
  return found;
}

Result<Dfa> EncodeCanonicalString(const Dfa& dfa, Budget& budget) {
  static const CharSet plain = {{' ', '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x7f}};
  if (HasOnlySymbols(dfa, plain)) return dfa;
  return Encode(dfa, AddCanonical, budget);
}

Result<Dfa> EncodeCanonicalString(const Dfa& dfa, uint32_t escaped, Budget& budget) {
  const EdgeEncoder encode = [escaped](Nfa& nfa, uint32_t first, uint32_t last, uint32_t from,
                                       uint32_t to) {
    if (escaped < first || escaped > last) return AddCanonical(nfa, first, last, from, to);
    if (first < escaped) AddCanonical(nfa, first, escaped - 1, from, to);
    if (escaped < last) AddCanonical(nfa, escaped + 1, last, from, to);
    AddPath(nfa, fmt::format("\\u{:04x}", escaped), from, to);
  };
  return Encode(dfa, encode, budget);
}

Dfa Quoted(const Dfa& bodies) {
  Dfa result = Dfa::Builder();
  const uint32_t end = static_cast<uint32_t>(bodies.num_states()) + 1;
  const Edge open{'"', '"', 1};
  result.AppendState(false, {&open, 1});
  std::vector<Edge> edges;
  for (uint32_t state = 0; state < bodies.num_states(); ++state) {
    edges.clear();
    for (const Edge& edge : bodies.edges(state)) {
      edges.push_back({edge.first, edge.last, edge.target + 1});
    }
    if (bodies.accepting(state)) {
      const auto behind = std::find_if(edges.begin(), edges.end(),
                                       [](const Edge& edge) { return edge.first > '"'; });
      edges.insert(behind, {'"', '"', end});
    }
    result.AppendState(false, edges);
  }
  result.AppendState(true, {});
  return Trim(std::move(result));
}

const Dfa& CanonicalBodies() {
  static const Dfa bodies = [] {
    Budget budget{Limits()};
    return *EncodeCanonicalString(StarDfa(CharSet::Any()), budget);
  }();
  return bodies;
}

}  // namespace deepinfer::grammar
