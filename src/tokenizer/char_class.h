// The character classes that the pre-tokenizer's regular expressions tell apart.
#pragma once

#include <array>
#include <cstdint>

namespace deepinfer {

// \p{L}, \p{M}, \p{N}, \p{P}, \p{S}, and \s in two parts: [\r\n] and the rest of White_Space.
// Unicode keeps them disjoint; kOther is everything else (controls, unassigned, private use).
enum class CharClass : uint8_t {
  kOther,
  kLetter,
  kMark,
  kNumber,
  kPunctuation,
  kSymbol,
  kSpace,
  kNewline,
};

// Any value, also beyond U+10FFFF (kOther). Unicode 16.0, which Hugging Face tokenizers 0.23 uses,
// or a later version where utf8proc has one.
CharClass ClassOfCodePoint(uint32_t code_point);

extern const std::array<CharClass, 128> kAsciiClass;

inline CharClass ClassOf(uint32_t code_point) {
  return code_point < 128 ? kAsciiClass[code_point] : ClassOfCodePoint(code_point);
}

}  // namespace deepinfer
