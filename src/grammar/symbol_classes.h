// Code points that a set of CharSets never tells apart, numbered: automata over classes are as
// small as the expression, however many ranges \p{L} has.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/char_set.h"

namespace deepinfer::grammar {

class SymbolClasses {
 public:
  explicit SymbolClasses(std::span<const CharSet> sets);

  uint32_t num_classes() const { return num_classes_; }
  // The classes that make up one of the constructor's sets, ascending.
  std::vector<uint32_t> ClassesOf(const CharSet& set) const;
  // An automaton over classes as one over code points.
  Dfa Expand(const Dfa& classes) const;

 private:
  struct Segment {
    uint32_t first;
    uint32_t last;
    uint32_t number;
  };
  std::vector<Segment> segments_;  // by first; code points in no set are left out
  uint32_t num_classes_ = 0;
};

}  // namespace deepinfer::grammar
