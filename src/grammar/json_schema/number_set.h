// Sets of numbers as regular languages of their canonical spelling (CanonicalNumber): closed under
// everything, exact for bounds of any size and for multiples.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

// A value; copies share the automaton.
class NumberSet {
 public:
  // No number.
  NumberSet() = default;
  static NumberSet All();
  static NumberSet Integers();
  static NumberSet One(std::string_view canonical);
  static Result<NumberSet> Of(std::vector<std::string> canonical, Budget& budget);
  bool empty() const { return words_ == nullptr; }
  bool is_all() const { return words_ == All().words_; }
  bool is_integers() const { return words_ == Integers().words_; }
  // Of canonical spellings. Only if not empty().
  const Dfa& words() const { return *words_; }

  enum class Bound { kAtLeast, kAbove, kAtMost, kBelow };
  // The numbers of the set within the bound.
  Result<NumberSet> Within(Bound bound, std::string_view canonical, Budget& budget) const;
  // Its multiples of `canonical` > 0. kResourceExhausted where the automaton of remainders would be
  // too large.
  Result<NumberSet> MultiplesOf(std::string_view canonical, Budget& budget) const;
  Result<NumberSet> Intersect(const NumberSet& other, Budget& budget) const;
  Result<NumberSet> Union(const NumberSet& other, Budget& budget) const;
  Result<NumberSet> Complement(Budget& budget) const;

 private:
  explicit NumberSet(Dfa words);

  std::shared_ptr<const Dfa> words_;  // null: none
};

// What outputs may write for the numbers of the set: integers as they are; if the set holds other
// numbers, also with zeros after the fraction ("1.50", "2.0").
Result<Dfa> NumberTexts(const NumberSet& set, Budget& budget);

}  // namespace deepinfer::grammar
