#include "grammar/json_schema/name_set.h"

#include <algorithm>

#include "grammar/json_schema/json_node.h"

namespace deepinfer::grammar {

bool NameSet::Contains(std::string_view name) const {
  bool inside = names.contains(std::string(name));
  if (!inside && !patterns.empty()) {
    const std::string body = CanonicalString(name);
    inside = std::any_of(patterns.begin(), patterns.end(),
                         [&](const auto& pattern) { return pattern->Accepts(body); });
  }
  return inside != complement;
}

NameSet NameSet::Complement() const {
  NameSet result = *this;
  result.complement = !complement;
  return result;
}

void NameSet::Add(const NameSet& other) {
  if (is_all() || other.is_none()) return;
  if (other.complement) {
    *this = All();
    return;
  }
  names.insert(other.names.begin(), other.names.end());
  patterns.insert(patterns.end(), other.patterns.begin(), other.patterns.end());
}

Result<Dfa> NameSet::UnlistedIn(const Dfa& among, Budget& budget) const {
  if (patterns.empty()) return complement ? among : Dfa();
  std::vector<Dfa> parts;
  for (const auto& pattern : patterns) parts.push_back(*pattern);
  DI_ASSIGN_OR_RETURN(const Dfa matched, Union(parts, budget));
  return complement ? Difference(among, matched, budget) : Intersect(among, matched, budget);
}

}  // namespace deepinfer::grammar
