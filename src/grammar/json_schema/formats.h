// The languages of JSON Schema's "format".
#pragma once

#include <memory>
#include <string_view>

#include "grammar/automaton.h"

namespace deepinfer::grammar {

// Over code points; null for a format that is not known. Thread-safe; made once a process.
// Two are a little narrower than the standards, so that they stay small: hostnames have up to three
// labels of 63 characters or up to eight of 30, none of which begins with "xn--"; leap seconds are
// 23:59:60 at an offset of zero.
std::shared_ptr<const Dfa> FormatWords(std::string_view format);

// The JSON texts, over bytes, of the strings that FormatWords gave; null for other words.
std::shared_ptr<const Dfa> FormatTexts(const Dfa* words);

// Formats of the standard that are not regular or need tables: regex, idn-hostname.
bool IsUnsupportedFormat(std::string_view format);

}  // namespace deepinfer::grammar
