// The languages of JSON Schema's "format".
#pragma once

#include <memory>
#include <string_view>

#include "grammar/automaton.h"

namespace deepinfer::grammar {

// Over code points; null for a format that is not known. Thread-safe; made once a process.
// Two are a little narrower than the standards, so that they stay small: hostnames have no labels
// that begin with "xn--", and leap seconds are 23:59:60 at an offset of zero.
std::shared_ptr<const Dfa> FormatWords(std::string_view format);

// Formats of the standard that are not regular or need tables: regex, idn-hostname.
bool IsUnsupportedFormat(std::string_view format);

}  // namespace deepinfer::grammar
