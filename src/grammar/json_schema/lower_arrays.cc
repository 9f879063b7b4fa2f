// Arrays: items one by one, then a repetition; counted or distinct items.
#include <algorithm>
#include <array>

#include "grammar/json_schema/schema_lowering.h"
#include "grammar/json_schema/words.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kMaxDistinctValues = 500;
constexpr size_t kMaxDistinctLists = 500;
constexpr size_t kMaxContains = 4;
constexpr size_t kMaxContainsStates = 3000;

}  // namespace

Result<NodeId> SchemaLowering::Array(const ArrayCase& array) {
  if (array.unique != nullptr && array.max > 1) return UniqueArray(array);
  if (!array.contains.empty()) return ContainingArray(array);
  return PlainArray(array);
}

NodeId SchemaLowering::PlainArray(const ArrayCase& array) {
  if (array.min > array.max) return ir_.Nothing();
  const uint32_t listed = static_cast<uint32_t>(std::min<uint64_t>(array.prefix.size(), array.max));
  // What may follow `listed` items, then from behind what may follow fewer.
  const uint32_t least = array.min > listed ? array.min - listed : 0;
  const uint32_t most = array.max == kUnbounded ? kUnbounded : array.max - listed;
  const NodeId item = Value(array.rest);
  if (listed == 0) {
    if (most == 0) return ir_.Literal("[]");
    const NodeId more =
        ir_.Repeat(ir_.Sequence(std::array{comma_, item}), least > 0 ? least - 1 : 0,
                   most == kUnbounded ? kUnbounded : most - 1);
    return Bracketed("[", ir_.Sequence(std::array{item, more}), least == 0, "]");
  }
  NodeId tail = ir_.Repeat(ir_.Sequence(std::array{comma_, item}), least, most);
  for (uint32_t i = listed; i-- > 1;) {
    tail = ir_.Sequence(std::array{comma_, Value(array.prefix[i]), tail});
    if (array.min <= i) tail = ir_.Optional(tail);
  }
  return Bracketed("[", ir_.Sequence(std::array{Value(array.prefix[0]), tail}), array.min == 0,
                   "]");
}

Result<std::optional<std::vector<std::string>>> SchemaLowering::FiniteValues(Term term) {
  using Texts = std::vector<std::string>;
  DI_ASSIGN_OR_RETURN(const ValueSet* set, sets_.SetOf(term));
  const std::optional<Texts> no;
  if (!set->arrays.empty() || !set->objects.empty()) return no;
  Texts values;
  if (set->null) values.push_back("null");
  if (set->no) values.push_back("false");
  if (set->yes) values.push_back("true");
  if (!set->numbers.empty()) {
    const std::optional<Texts> numbers = FiniteTexts(set->numbers.words(), kMaxDistinctValues);
    if (!numbers) return no;
    values.insert(values.end(), numbers->begin(), numbers->end());
  }
  if (!set->strings.empty()) {
    for (const StringCase& string : set->strings) {
      if (string.words == nullptr && string.max > 0) return no;
    }
    DI_ASSIGN_OR_RETURN(const Dfa words, sets_.algebra().WordsOf(set->strings));
    const std::optional<Texts> strings = FiniteTexts(words, kMaxDistinctValues);
    if (!strings) return no;
    for (const std::string& text : *strings) values.push_back("\"" + CanonicalString(text) + "\"");
  }
  if (values.size() > kMaxDistinctValues) return no;
  return std::optional(std::move(values));
}

Result<NodeId> SchemaLowering::UniqueArray(const ArrayCase& array) {
  const auto refuse = [&](std::string_view why) {
    return sets_.document().Refuse(*array.unique, "uniqueItems", why);
  };
  constexpr std::string_view kInfinite = "the items' values are not few scalars";
  if (!array.contains.empty()) return refuse("together with contains");
  DI_ASSIGN_OR_RETURN(const bool ends, sets_.IsEmpty(array.rest));
  if (array.prefix.empty()) {
    DI_ASSIGN_OR_RETURN(const auto values, FiniteValues(array.rest));
    if (!values) return refuse(kInfinite);
    Unordered unordered;
    unordered.separator = comma_;
    unordered.min = std::max(array.min, 1u);
    unordered.max = array.max;
    for (const std::string& value : *values) unordered.members.push_back({ir_.Literal(value)});
    if (array.min > values->size()) return ir_.Nothing();
    return Bracketed("[", values->empty() ? ir_.Nothing() : ir_.Any(std::move(unordered)),
                     array.min == 0, "]");
  }
  if (!ends && array.max > array.prefix.size()) return refuse("behind prefixItems");
  // Few lists: each written out.
  const size_t most = std::min<size_t>(array.max, array.prefix.size());
  std::vector<std::vector<std::string>> lists = {{}};
  std::vector<NodeId> choices;
  for (size_t size = 0; size <= most; ++size) {
    for (const auto& list : lists) {
      if (size < array.min) break;
      std::vector<NodeId> parts;
      for (const std::string& value : list) {
        if (!parts.empty()) parts.push_back(comma_);
        parts.push_back(ir_.Literal(value));
      }
      choices.push_back(Bracketed("[", ir_.Sequence(parts), list.empty(), "]"));
    }
    if (size == most) break;
    DI_ASSIGN_OR_RETURN(const auto values, FiniteValues(array.prefix[size]));
    if (!values) return refuse(kInfinite);
    std::vector<std::vector<std::string>> longer;
    for (const auto& list : lists) {
      for (const std::string& value : *values) {
        if (std::find(list.begin(), list.end(), value) != list.end()) continue;
        longer.push_back(list);
        longer.back().push_back(value);
      }
    }
    if (longer.size() > kMaxDistinctLists) return refuse("more than 500 lists of items");
    lists = std::move(longer);
  }
  return ir_.Choice(choices);
}

// A rule for each number of items and of contained ones, as far as they matter. Every item is
// written as one that counts or as one that does not; where there is no upper limit, it may count
// and still be written as one that does not.
Result<NodeId> SchemaLowering::ContainingArray(const ArrayCase& array) {
  using Contains = ArrayCase::Contains;
  const std::vector<Contains>& wanted = array.contains;
  if (wanted.size() > kMaxContains) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "contains is not supported more than {} times for one array", kMaxContains);
  }
  // Whether an item is the first one matters always.
  uint64_t last = std::max<uint64_t>({1, array.prefix.size(), array.min});
  for (const Contains& contains : wanted) last = std::max<uint64_t>(last, contains.from);
  if (array.max != kUnbounded) last = std::max<uint64_t>(last, array.max);
  uint64_t states = last + 1;
  const auto cap = [](const Contains& contains) {
    return contains.max == kUnbounded ? contains.min : contains.max;
  };
  for (const Contains& contains : wanted) states *= uint64_t{cap(contains)} + 1;
  if (states > kMaxContainsStates) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "contains is not supported with so many items to count ({} states)", states);
  }
  // State: the number of items, then the counts. Rules are made as they are reached.
  using State = std::vector<uint32_t>;
  std::map<State, RuleId> rules;
  std::vector<State> pending;
  const auto rule_of = [&](const State& state) {
    const auto known = rules.find(state);
    if (known != rules.end()) return known->second;
    const RuleId rule = ir_.AddRule("items");
    rules.emplace(state, rule);
    pending.push_back(state);
    return rule;
  };
  // The items after `state`, each with a separator unless it is the first one.
  const auto items_after = [&](const State& state, bool& may_end) {
    std::vector<NodeId> choices;
    const uint32_t position = state[0];
    may_end = position >= array.min;
    for (size_t i = 0; i < wanted.size(); ++i) may_end &= state[i + 1] >= wanted[i].min;
    if (position == array.max) return choices;
    for (uint32_t counted = 0; counted < 1u << wanted.size(); ++counted) {
      State next = state;
      next[0] = static_cast<uint32_t>(std::min<uint64_t>(position + 1, last));
      std::vector<Term> parts = {array.ItemAt(position)};
      bool possible = true;
      for (size_t i = 0; i < wanted.size(); ++i) {
        const bool counts = (counted >> i) & 1;
        const bool active = position >= wanted[i].from;
        const bool full = state[i + 1] == cap(wanted[i]);
        if (counts) {
          possible &= active && !full;
          parts.push_back(wanted[i].term);
          ++next[i + 1];
        } else if (active && wanted[i].max != kUnbounded) {
          parts.push_back(sets_.terms().Not(wanted[i].term));
        }
      }
      if (!possible) continue;
      std::vector<NodeId> item;
      if (position > 0) item.push_back(comma_);
      item.push_back(Value(sets_.terms().All(std::move(parts))));
      item.push_back(ir_.Call(rule_of(next)));
      choices.push_back(ir_.Sequence(item));
    }
    return choices;
  };
  bool may_be_empty = false;
  const NodeId content = ir_.Choice(items_after(State(wanted.size() + 1, 0), may_be_empty));
  while (!pending.empty()) {
    const State state = pending.back();
    pending.pop_back();
    bool may_end = false;
    std::vector<NodeId> choices = items_after(state, may_end);
    if (may_end) choices.push_back(ir_.Empty());
    ir_.SetBody(rules.at(state), ir_.Choice(choices));
    DI_RETURN_IF_ERROR(budget_.Charge(20, rules.size()));
  }
  return Bracketed("[", content, may_be_empty, "]");
}

}  // namespace deepinfer::grammar
