// Sets of JSON values in a form that is closed under intersection, union and complement, type by
// type. What is inside arrays and objects stays a Term.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/json_schema/name_set.h"
#include "grammar/json_schema/number_set.h"
#include "grammar/json_schema/term.h"

namespace deepinfer::grammar {

// Strings of a language (over code points; null: all) with a number of code points. Lengths stand
// beside the language only where it is all strings.
struct StringCase {
  std::shared_ptr<const Dfa> words;
  uint32_t min = 0;
  uint32_t max = kUnbounded;
};

struct ArrayCase {
  std::vector<Term> prefix;  // what the items must be, one by one
  Term rest = kEverything;   // and all further ones
  uint32_t min = 0;
  uint32_t max = kUnbounded;
  // Between min and max of the items from `from` on are in `term`.
  struct Contains {
    Term term;
    uint32_t from;
    uint32_t min;
    uint32_t max;
  };
  std::vector<Contains> contains;
  const JsonNode* unique = nullptr;  // the schema that asks for distinct items

  // For unevaluatedItems: so many items at the front (kUnbounded: all), and those of these terms,
  // have been evaluated.
  uint32_t evaluated = 0;
  std::vector<Term> evaluated_terms;

  // What the item at this index must be, apart from `contains`.
  Term ItemAt(size_t index) const { return index < prefix.size() ? prefix[index] : rest; }
};

struct ObjectCase {
  struct Names {
    NameSet names;
    Term term;
  };
  std::map<std::string, Term> named;     // a value of this name, if there is one, is in the term
  std::map<std::string, Term> required;  // there is a value of this name, in the term
  std::vector<Names> others;             // all values of such names are in the term
  std::vector<Names> some;               // some value of such a name is in the term
  uint32_t min = 0;                      // number of members
  uint32_t max = kUnbounded;
  const JsonNode* min_from = nullptr;  // the schema that sets min

  std::vector<std::string> order;  // names of "properties", where their order matters

  NameSet evaluated;  // for unevaluatedProperties
};

struct ValueSet {
  bool null = false;
  bool no = false;   // false
  bool yes = false;  // true
  NumberSet numbers;
  std::vector<StringCase> strings;  // unions
  std::vector<ArrayCase> arrays;
  std::vector<ObjectCase> objects;

  static ValueSet Everything();
};

}  // namespace deepinfer::grammar
