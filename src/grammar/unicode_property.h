// Unicode properties of regular expressions, from utf8proc's tables.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/char_set.h"

namespace deepinfer::grammar {

// The set of \p{name}: a general category by its short or long name ("L", "Lu", "Letter",
// "Uppercase_Letter", also after "gc=" or "General_Category="), "Any", "ASCII", "Assigned" or
// "White_Space". Nothing for other names: scripts and derived properties are not in the tables.
std::optional<CharSet> UnicodeProperty(std::string_view name);

// The set with the simple upper- and lower-case forms of its members.
CharSet AddCaseVariants(const CharSet& set);

}  // namespace deepinfer::grammar
