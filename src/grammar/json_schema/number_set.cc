#include "grammar/json_schema/number_set.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "grammar/json_schema/words.h"

namespace deepinfer::grammar {
namespace {

// More remainders than this are refused.
constexpr uint64_t kMaxRemainders = 20'000;

// Builds automata over digits and '.', from states numbered by the caller.
struct DigitState {
  bool accepting = false;
  std::array<uint32_t, 10> digits;
  uint32_t point = Dfa::kDead;
  uint32_t minus = Dfa::kDead;

  DigitState() { digits.fill(Dfa::kDead); }
};

Dfa BuildDigits(const std::vector<DigitState>& states) {
  Dfa dfa = Dfa::Builder();
  std::vector<Edge> edges;
  for (const DigitState& state : states) {
    edges.clear();
    if (state.minus != Dfa::kDead) edges.push_back({'-', '-', state.minus});
    if (state.point != Dfa::kDead) edges.push_back({'.', '.', state.point});
    for (uint32_t digit = 0; digit < 10; ++digit) {
      const uint32_t target = state.digits[digit];
      if (target == Dfa::kDead) continue;
      const uint32_t symbol = '0' + digit;
      if (!edges.empty() && edges.back().target == target && edges.back().last + 1 == symbol) {
        edges.back().last = symbol;
      } else {
        edges.push_back({symbol, symbol, target});
      }
    }
    dfa.AppendState(state.accepting, edges);
  }
  return Trim(std::move(dfa));
}

// -?(0|[1-9]\d*)(\.\d*[1-9])?, but not -0; or its integers.
Dfa CanonicalWords(bool integers_only) {
  enum : uint32_t { kStart, kMinus, kZero, kInteger, kPoint, kInFraction, kFraction, kMinusZero };
  std::vector<DigitState> states(8);
  for (const uint32_t start : {kStart, kMinus}) {
    states[start].digits.fill(kInteger);
    states[start].digits[0] = start == kStart ? kZero : kMinusZero;
  }
  states[kStart].minus = kMinus;
  states[kInteger].digits.fill(kInteger);
  states[kZero].accepting = states[kInteger].accepting = true;
  if (!integers_only) {
    for (const uint32_t whole : {kZero, kInteger, kMinusZero}) states[whole].point = kPoint;
    for (const uint32_t part : {kPoint, kInFraction, kFraction}) {
      states[part].digits.fill(kFraction);
      states[part].digits[0] = kInFraction;
    }
    states[kFraction].accepting = true;
  }
  return BuildDigits(states);
}

// Nonnegative decimals by how they compare with one: state = 3 * position + order so far, where
// the order within a position is less, equal, greater.
Dfa Comparison(std::string_view decimal, bool less, bool equal, bool greater) {
  const size_t point = std::min(decimal.find('.'), decimal.size());
  const std::string_view whole = decimal.substr(0, point);
  const std::string_view fraction = point < decimal.size() ? decimal.substr(point + 1) : "";
  enum : uint32_t { kLess, kEqual, kGreater };
  const uint32_t n = static_cast<uint32_t>(whole.size());
  const uint32_t m = static_cast<uint32_t>(fraction.size());
  // Positions 0..n of digits before the point, then n+1.. of the fraction; three states at the end
  // for what is decided in the fraction, one for more digits than the number has.
  const uint32_t fraction_begin = 3 * (n + 1);
  const uint32_t decided = fraction_begin + m + 1;
  const uint32_t longer = decided + 3;
  std::vector<DigitState> states(longer + 1);
  const std::array<bool, 3> accepts = {less, equal, greater};
  const auto enter_fraction = [&](uint32_t order) {
    return order == kEqual ? fraction_begin : decided + order;
  };
  for (uint32_t position = 0; position <= n; ++position) {
    for (uint32_t order = kLess; order <= kGreater; ++order) {
      DigitState& state = states[3 * position + order];
      for (uint32_t digit = 0; digit < 10; ++digit) {
        if (position == n) {
          state.digits[digit] = longer;
          continue;
        }
        const uint32_t own = static_cast<uint32_t>(whole[position] - '0');
        uint32_t next = order;
        if (order == kEqual) next = digit < own ? kLess : digit > own ? kGreater : kEqual;
        state.digits[digit] = 3 * (position + 1) + next;
      }
      // Fewer digits: less, whatever they are.
      const uint32_t at_end = position < n ? uint32_t{kLess} : order;
      const bool ends_equal = at_end == kEqual && m > 0;
      state.accepting = accepts[ends_equal ? uint32_t{kLess} : at_end];
      state.point = enter_fraction(at_end);
    }
  }
  for (uint32_t position = 0; position <= m; ++position) {
    DigitState& state = states[fraction_begin + position];
    state.accepting = accepts[position < m ? kLess : kEqual];
    for (uint32_t digit = 0; digit < 10; ++digit) {
      if (position == m) {
        state.digits[digit] = digit == 0 ? fraction_begin + m : decided + kGreater;
        continue;
      }
      const uint32_t own = static_cast<uint32_t>(fraction[position] - '0');
      state.digits[digit] =
          digit == own ? fraction_begin + position + 1 : decided + (digit < own ? kLess : kGreater);
    }
  }
  for (uint32_t order = kLess; order <= kGreater; ++order) {
    states[decided + order].digits.fill(decided + order);
    states[decided + order].accepting = accepts[order];
  }
  states[longer].digits.fill(longer);
  states[longer].point = decided + kGreater;
  states[longer].accepting = greater;
  // State 0 must be the start: position 0, equal. It is number 1.
  std::swap(states[0], states[1]);
  const auto renumber = [](uint32_t& target) {
    if (target <= 1) target = 1 - target;
  };
  for (DigitState& state : states) {
    for (uint32_t& target : state.digits) renumber(target);
    renumber(state.point);
  }
  return BuildDigits(states);
}

// Words of `positive`, and '-' before words of `negative`; both over digits and '.'.
Dfa Signed(const Dfa& positive, const Dfa& negative) {
  const uint32_t shift = static_cast<uint32_t>(positive.num_states());
  Dfa result = Dfa::Builder();
  std::vector<Edge> edges = {{'-', '-', 1 + shift}};
  const auto append = [&](const Dfa& dfa, uint32_t state, uint32_t add) {
    for (Edge edge : dfa.edges(state)) {
      edge.target += add;
      edges.push_back(edge);
    }
  };
  append(positive, 0, 1);
  result.AppendState(positive.accepting(0), edges);
  for (const auto& [dfa, add] : {std::pair(&positive, 1u), std::pair(&negative, 1 + shift)}) {
    for (uint32_t state = 0; state < dfa->num_states(); ++state) {
      edges.clear();
      append(*dfa, state, add);
      result.AppendState(dfa->accepting(state), edges);
    }
  }
  return Trim(std::move(result));
}

// Nonnegative multiples of divisor * 10^-places. Layer 0 is before the point, layer 1 + k behind it
// and k digits; within a layer a state is the remainder of all digits read.
Result<Dfa> NonnegativeMultiples(uint64_t divisor, uint32_t places, Budget& budget) {
  const uint32_t layers = places > 0 ? places + 2 : 1;
  const uint64_t count = divisor * layers;
  DI_RETURN_IF_ERROR(budget.Charge(count * 10, count));
  std::vector<DigitState> states(count);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const uint32_t open = layer == 0 ? places : places + 1 - layer;  // digits that may follow
    uint64_t power = 1;
    for (uint32_t i = 0; i < open; ++i) power = power * 10 % divisor;
    for (uint64_t remainder = 0; remainder < divisor; ++remainder) {
      DigitState& state = states[layer * divisor + remainder];
      state.accepting = remainder * power % divisor == 0;
      if (layer == 0 && places > 0) state.point = static_cast<uint32_t>(divisor + remainder);
      if (layer > 0 && open == 0) continue;
      const uint64_t next_layer = layer == 0 ? 0 : layer + 1;
      for (uint64_t digit = 0; digit < 10; ++digit) {
        const uint64_t next = (remainder * 10 + digit) % divisor;
        state.digits[digit] = static_cast<uint32_t>(next_layer * divisor + next);
      }
    }
  }
  return BuildDigits(states);
}

}  // namespace

NumberSet::NumberSet(Dfa words) {
  if (!words.empty()) words_ = std::make_shared<const Dfa>(std::move(words));
}

NumberSet NumberSet::All() {
  static const NumberSet all(CanonicalWords(false));
  return all;
}

NumberSet NumberSet::Integers() {
  static const NumberSet integers(CanonicalWords(true));
  return integers;
}

NumberSet NumberSet::One(std::string_view canonical) { return NumberSet(WordDfa(canonical)); }

Result<NumberSet> NumberSet::Of(std::vector<std::string> canonical, Budget& budget) {
  DI_ASSIGN_OR_RETURN(Dfa words, WordsDfa(std::move(canonical), budget));
  return NumberSet(std::move(words));
}

Result<NumberSet> NumberSet::Within(Bound bound, std::string_view canonical, Budget& budget) const {
  if (empty()) return *this;
  const bool negative = canonical.starts_with('-');
  const std::string_view size = negative ? canonical.substr(1) : canonical;
  const bool upwards = bound == Bound::kAtLeast || bound == Bound::kAbove;
  const bool equal = bound == Bound::kAtLeast || bound == Bound::kAtMost;
  // The side of zero that the bound lies on, by size; the other one is all in or all out.
  const Dfa near = Comparison(size, upwards == negative, equal, upwards != negative);
  const Dfa far = upwards == negative ? Comparison("0", false, true, true) : Dfa();
  const Dfa both = negative ? Signed(far, near) : Signed(near, far);
  DI_ASSIGN_OR_RETURN(Dfa words, deepinfer::grammar::Intersect(*words_, both, budget));
  return NumberSet(std::move(words));
}

Result<NumberSet> NumberSet::MultiplesOf(std::string_view canonical, Budget& budget) const {
  if (empty()) return *this;
  const size_t point = std::min(canonical.find('.'), canonical.size());
  const size_t places = point < canonical.size() ? canonical.size() - point - 1 : 0;
  uint64_t divisor = 0;
  for (const char c : canonical) {
    if (c == '.') continue;
    divisor = divisor * 10 + static_cast<uint64_t>(c - '0');
    if (divisor * (places + 1) > kMaxRemainders) {
      return MakeError(ErrorCode::kResourceExhausted,
                       "multiples of {} take more than {} remainders to tell",
                       canonical.substr(0, 80), kMaxRemainders);
    }
  }
  DI_ASSIGN_OR_RETURN(Dfa positive,
                      NonnegativeMultiples(divisor, static_cast<uint32_t>(places), budget));
  DI_ASSIGN_OR_RETURN(Dfa words,
                      deepinfer::grammar::Intersect(*words_, Signed(positive, positive), budget));
  return NumberSet(std::move(words));
}

Result<NumberSet> NumberSet::Intersect(const NumberSet& other, Budget& budget) const {
  if (empty() || other.is_all() || words_ == other.words_) return *this;
  if (other.empty() || is_all()) return other;
  DI_ASSIGN_OR_RETURN(Dfa words, deepinfer::grammar::Intersect(*words_, *other.words_, budget));
  return NumberSet(std::move(words));
}

Result<NumberSet> NumberSet::Union(const NumberSet& other, Budget& budget) const {
  if (empty() || other.is_all() || words_ == other.words_) return other;
  if (other.empty() || is_all()) return *this;
  const std::array<Dfa, 2> parts = {*words_, *other.words_};
  DI_ASSIGN_OR_RETURN(Dfa words, deepinfer::grammar::Union(parts, budget));
  return NumberSet(std::move(words));
}

Result<NumberSet> NumberSet::Complement(Budget& budget) const {
  if (empty()) return All();
  if (is_all()) return NumberSet();
  DI_ASSIGN_OR_RETURN(Dfa words, Difference(All().words(), *words_, budget));
  return NumberSet(std::move(words));
}

Result<Dfa> NumberTexts(const NumberSet& set, Budget& budget) {
  const Dfa& words = set.words();
  const uint32_t n = static_cast<uint32_t>(words.num_states());
  bool only_integers = true;
  for (uint32_t state = 0; state < n; ++state) {
    for (const Edge& edge : words.edges(state)) only_integers &= edge.first != '.';
  }
  if (only_integers) return words;
  // States before the point, those behind it, and zeros at the end.
  Nfa nfa;
  while (nfa.num_states() < 2 * n + 2) nfa.AddState();
  const uint32_t point = 2 * n;
  const uint32_t zeros = 2 * n + 1;
  nfa.SetAccepting(zeros);
  nfa.AddEdge(point, '0', '0', zeros);
  nfa.AddEdge(zeros, '0', '0', zeros);
  for (uint32_t state = 0; state < n; ++state) {
    for (const Edge& edge : words.edges(state)) {
      const bool is_point = edge.first == '.';
      nfa.AddEdge(state, edge.first, edge.last, is_point ? n + edge.target : edge.target);
      if (!is_point) nfa.AddEdge(n + state, edge.first, edge.last, n + edge.target);
    }
    if (!words.accepting(state)) continue;
    nfa.SetAccepting(state);
    nfa.SetAccepting(n + state);
    nfa.AddEdge(state, '.', '.', point);
    nfa.AddEdge(n + state, '0', '0', zeros);
  }
  DI_ASSIGN_OR_RETURN(const Dfa dfa, Determinise(nfa, budget));
  return Minimise(dfa, budget);
}

}  // namespace deepinfer::grammar
