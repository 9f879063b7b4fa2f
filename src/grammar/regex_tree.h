// The syntax tree of a regular expression.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/char_set.h"
#include "grammar/limits.h"
#include "grammar/regex.h"

namespace deepinfer::grammar {

enum class RegexKind : uint8_t { kEmpty, kSet, kSequence, kChoice, kRepeat, kAssertion };
enum class RegexAssertion : uint8_t { kTextStart, kTextEnd, kWordBoundary, kNotWordBoundary };

struct RegexNode {
  RegexKind kind = RegexKind::kEmpty;
  RegexAssertion assertion{};      // kAssertion
  uint32_t min = 0;                // kRepeat
  uint32_t max = 0;                // kRepeat; kUnbounded
  uint32_t set = 0;                // kSet: index into sets
  std::vector<uint32_t> children;  // indices into nodes
};

struct RegexTree {
  std::vector<RegexNode> nodes;
  std::vector<CharSet> sets;
  uint32_t root = 0;
  bool has_assertions = false;
};

// Errors as RegexToDfa's.
Result<RegexTree> ParseRegex(std::string_view pattern, const RegexOptions& options,
                             const Limits& limits);

// \d, \w and \s by their lower-case letter.
CharSet RegexClass(char letter);

}  // namespace deepinfer::grammar
