// The alphabet in which byte-level vocabularies spell bytes: printable Latin-1 characters stand for
// themselves, the other 68 bytes for U+0100 to U+0143 in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {

// The bytes that `spelling` spells; none if it is not UTF-8 or has a character outside the
// alphabet.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

// The inverse.
std::string SpellingOfBytes(std::string_view bytes);

}  // namespace deepinfer
