// Finite languages, and languages of strings as JSON texts spell them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

// Exactly these words, over byte symbols. Duplicates do not matter.
Result<Dfa> WordsDfa(std::vector<std::string> words, Budget& budget);
// The code points of a valid UTF-8 text.
std::vector<uint32_t> CodePoints(std::string_view text);
// Exactly these UTF-8 texts, over code points.
Result<Dfa> TextsDfa(const std::vector<std::string>& texts, Budget& budget);
// The words of the language if there are at most `max`, sorted by symbol; over code points they
// are UTF-8.
std::optional<std::vector<std::string>> FiniteTexts(const Dfa& dfa, size_t max);

// From code points to the bytes of CanonicalString.
Result<Dfa> EncodeCanonicalString(const Dfa& dfa, Budget& budget);
// With \u for one character of at most U+FFFF, not a control, as well.
Result<Dfa> EncodeCanonicalString(const Dfa& dfa, uint32_t escaped, Budget& budget);
// '"' before and behind the words, which do not hold it unescaped.
Dfa Quoted(const Dfa& bodies);
// All canonical bodies of strings, over bytes.
const Dfa& CanonicalBodies();

}  // namespace deepinfer::grammar
