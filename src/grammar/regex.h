// Regular expressions: a dialect close to ECMAScript (with its u flag) and RE2. docs/grammar.md
// lists it.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/ir.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

struct RegexOptions {
  bool ignore_case = false;  // simple case pairs
  bool dot_all = false;      // '.' takes line ends, too
};

enum class RegexMatch {
  kWhole,   // the expression describes the whole text
  kSearch,  // it occurs somewhere in the text, as JSON Schema's "pattern" means it
};

// The language over code points. kInvalidArgument with line and column for an expression that is
// malformed, kUnsupported with its name for what is not regular (look-around, back-references) or
// not known, kResourceExhausted beyond the budget.
Result<Dfa> RegexToDfa(std::string_view pattern, RegexMatch match, const RegexOptions& options,
                       Budget& budget);

// A node of the whole text. Long counted repetitions stay counted, so a{0,1000000} is small here.
Result<NodeId> AddRegex(GrammarIr& ir, std::string_view pattern, const RegexOptions& options,
                        Budget& budget);

// A grammar of one rule.
Result<GrammarIr> RegexToIr(std::string_view pattern, const RegexOptions& options, Budget& budget);

}  // namespace deepinfer::grammar
