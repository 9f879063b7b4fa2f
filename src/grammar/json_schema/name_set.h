// Sets of property names.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

// Some names and some patterns, or all names but those. Patterns are automata over the bytes of
// CanonicalString. A value; copies share automata.
struct NameSet {
  bool complement = false;
  std::set<std::string> names;
  std::vector<std::shared_ptr<const Dfa>> patterns;

  static NameSet All() {
    NameSet all;
    all.complement = true;
    return all;
  }
  static NameSet One(std::string name) {
    NameSet one;
    one.names.insert(std::move(name));
    return one;
  }
  bool is_all() const { return complement && names.empty() && patterns.empty(); }
  bool is_none() const { return !complement && names.empty() && patterns.empty(); }

  bool Contains(std::string_view name) const;
  NameSet Complement() const;
  // Adds the names of a set that is no complement, or of all.
  void Add(const NameSet& other);

  // The names of `among` (over bytes) that are in the set, apart from all those it lists.
  Result<Dfa> UnlistedIn(const Dfa& among, Budget& budget) const;
};

}  // namespace deepinfer::grammar
