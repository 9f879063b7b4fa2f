#include "grammar/char_set.h"

#include <algorithm>
#include <utility>

namespace deepinfer::grammar {
namespace {

// Sorts, joins what overlaps or touches.
void Normalise(std::vector<SymbolRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const SymbolRange& a, const SymbolRange& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const SymbolRange& range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].last + 1) {
      ranges[kept - 1].last = std::max(ranges[kept - 1].last, range.last);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace

CharSet::CharSet(std::initializer_list<SymbolRange> ranges) : ranges_(ranges) {
  Normalise(ranges_);
}

CharSet CharSet::Any() { return {{0, 0xd7ff}, {0xe000, kMaxCodePoint}}; }

void CharSet::Add(uint32_t first, uint32_t last) {
  const bool at_end = ranges_.empty() || first > ranges_.back().last;
  ranges_.push_back({first, last});
  if (!at_end || (ranges_.size() > 1 && first == ranges_[ranges_.size() - 2].last + 1)) {
    Normalise(ranges_);
  }
}

void CharSet::Add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  Normalise(ranges_);
}

CharSet CharSet::Union(const CharSet& other) const {
  CharSet result = *this;
  result.Add(other);
  return result;
}

CharSet CharSet::Intersect(const CharSet& other) const {
  CharSet result;
  size_t i = 0;
  size_t j = 0;
  while (i < ranges_.size() && j < other.ranges_.size()) {
    const SymbolRange& a = ranges_[i];
    const SymbolRange& b = other.ranges_[j];
    const uint32_t first = std::max(a.first, b.first);
    const uint32_t last = std::min(a.last, b.last);
    if (first <= last) result.ranges_.push_back({first, last});
    if (a.last < b.last) {
      ++i;
    } else {
      ++j;
    }
  }
  return result;
}

CharSet CharSet::Complement() const {
  CharSet gaps;
  uint32_t next = 0;
  for (const SymbolRange& range : ranges_) {
    if (range.first > next) gaps.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kMaxCodePoint) gaps.ranges_.push_back({next, kMaxCodePoint});
  return gaps.Intersect(Any());
}

bool CharSet::Contains(uint32_t code_point) const {
  const auto range = std::lower_bound(
      ranges_.begin(), ranges_.end(), code_point,
      [](const SymbolRange& candidate, uint32_t value) { return candidate.last < value; });
  return range != ranges_.end() && range->first <= code_point;
}

}  // namespace deepinfer::grammar
