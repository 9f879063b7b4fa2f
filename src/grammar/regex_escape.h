// Escapes and bracketed classes of regular expressions.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "grammar/char_set.h"
#include "grammar/source_position.h"
#include "grammar/unicode_property.h"

namespace deepinfer::grammar {

// A position in valid UTF-8.
struct RegexReader {
  std::string_view text;
  size_t pos;

  bool at_end() const { return pos >= text.size(); }
  char peek(size_t ahead = 0) const { return pos + ahead < text.size() ? text[pos + ahead] : '\0'; }
  bool Take(char c) {
    if (at_end() || text[pos] != c) return false;
    ++pos;
    return true;
  }
  tl::unexpected<Error> Fail(ErrorCode code, size_t at, std::string_view what) const {
    return MakeError(code, "regular expression, {}: {}", PositionText(text, at), what);
  }
};

struct RegexEscape {
  CharSet set;
  std::optional<uint32_t> code_point;  // where the escape stands for one character
};

// Reads what begins with a backslash, in or outside a class.
Result<RegexEscape> ParseRegexEscape(RegexReader& reader);

// Reads what begins with [. With ignore_case the class has both cases before it is negated.
Result<CharSet> ParseRegexClass(RegexReader& reader, bool ignore_case);

}  // namespace deepinfer::grammar
