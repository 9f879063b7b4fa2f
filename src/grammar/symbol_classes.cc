#include "grammar/symbol_classes.h"

#include <algorithm>
#include <unordered_map>

#include "base/random.h"

namespace deepinfer::grammar {

SymbolClasses::SymbolClasses(std::span<const CharSet> sets) {
  struct Event {
    uint32_t at;
    uint64_t key;
  };
  // A random word for every set; the sum of those that hold a code point is its class's name.
  std::vector<Event> events;
  for (size_t i = 0; i < sets.size(); ++i) {
    const uint64_t key = RandomBits(0x53796d626f6cu, i);
    for (const SymbolRange& range : sets[i].ranges()) {
      events.push_back({range.first, key});
      events.push_back({range.last + 1, ~key + 1});
    }
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.at < b.at; });
  std::unordered_map<uint64_t, uint32_t> numbers;
  uint64_t name = 0;
  for (size_t i = 0; i < events.size();) {
    const uint32_t first = events[i].at;
    for (; i < events.size() && events[i].at == first; ++i) name += events[i].key;
    if (i == events.size() || name == 0) continue;
    const uint32_t number =
        numbers.emplace(name, static_cast<uint32_t>(numbers.size())).first->second;
    segments_.push_back({first, events[i].at - 1, number});
  }
  num_classes_ = static_cast<uint32_t>(numbers.size());
}

std::vector<uint32_t> SymbolClasses::ClassesOf(const CharSet& set) const {
  std::vector<uint32_t> classes;
  for (const SymbolRange& range : set.ranges()) {
    auto segment = std::lower_bound(
        segments_.begin(), segments_.end(), range.first,
        [](const Segment& candidate, uint32_t value) { return candidate.first < value; });
    for (; segment != segments_.end() && segment->last <= range.last; ++segment) {
      classes.push_back(segment->number);
    }
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

Dfa SymbolClasses::Expand(const Dfa& classes) const {
  Dfa result = Dfa::Builder();
  std::vector<uint32_t> target(num_classes_);
  std::vector<Edge> edges;
  for (uint32_t state = 0; state < classes.num_states(); ++state) {
    std::fill(target.begin(), target.end(), Dfa::kDead);
    for (const Edge& edge : classes.edges(state)) {
      for (uint32_t number = edge.first; number <= edge.last; ++number) {
        target[number] = edge.target;
      }
    }
    edges.clear();
    if (!classes.edges(state).empty()) {
      for (const Segment& segment : segments_) {
        if (target[segment.number] == Dfa::kDead) continue;
        edges.push_back({segment.first, segment.last, target[segment.number]});
      }
    }
    result.AppendState(classes.accepting(state), edges);
  }
  return result;
}

}  // namespace deepinfer::grammar
