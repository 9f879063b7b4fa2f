#include "tokenizer/pre_tokenizer.h"

#include <string>

#include "tokenizer/char_class.h"
#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

constexpr std::string_view kNumbersRegex = R"(\p{N}{1,3})";
constexpr std::string_view kCjkRegex = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view kWordsRegex = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
                                         R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
                                         R"(| ?[\p{P}\p{S}]+[\r\n]*)"
                                         R"(|\s*[\r\n]+)"
                                         R"(|\s+(?!\S))"
                                         R"(|\s+)";

// One character of a text: its class and where the next one begins.
struct Char {
  CharClass char_class;
  size_t end;
};

inline Char CharAt(std::string_view text, size_t pos) {
  const auto byte = static_cast<uint8_t>(text[pos]);
  if (byte < 128) return {kAsciiClass[byte], pos + 1};
  const Utf8Step step = ReadUtf8(text, pos);
  if (step.status != Utf8Status::kValid) return {CharClass::kOther, pos + 1};
  return {ClassOfCodePoint(step.code_point), pos + step.length};
}

constexpr uint32_t Bit(CharClass c) { return 1u << static_cast<uint32_t>(c); }
constexpr uint32_t kLetterOrMark = Bit(CharClass::kLetter) | Bit(CharClass::kMark);
constexpr uint32_t kPunctuationOrSymbol = Bit(CharClass::kPunctuation) | Bit(CharClass::kSymbol);
constexpr uint32_t kAnySpace = Bit(CharClass::kSpace) | Bit(CharClass::kNewline);

inline bool In(CharClass c, uint32_t set) { return (Bit(c) & set) != 0; }

// The end of the run of characters of `set` that begins at `pos` (pos itself: no such run).
size_t RunEnd(std::string_view text, size_t pos, uint32_t set) {
  while (pos < text.size()) {
    const Char c = CharAt(text, pos);
    if (!In(c.char_class, set)) break;
    pos = c.end;
  }
  return pos;
}

inline bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Every match function returns the end of its match at text[pos], or pos where there is none.

size_t MatchNumbers(std::string_view text, size_t pos) {
  for (int count = 0; count < 3 && pos < text.size(); ++count) {
    const Char c = CharAt(text, pos);
    if (c.char_class != CharClass::kNumber) break;
    pos = c.end;
  }
  return pos;
}

size_t MatchCjk(std::string_view text, size_t pos) {
  while (pos < text.size() && static_cast<uint8_t>(text[pos]) >= 0x80) {
    const Utf8Step step = ReadUtf8(text, pos);
    const uint32_t c = step.status == Utf8Status::kValid ? step.code_point : 0;
    const bool matches = (c >= 0x4e00 && c <= 0x9fa5) || (c >= 0x3040 && c <= 0x30ff);
    if (!matches) break;
    pos += step.length;
  }
  return pos;
}

// \s*[\r\n]+ | \s+(?!\S) | \s+ on the run of white space that begins at pos.
size_t MatchWhiteSpace(std::string_view text, size_t pos) {
  size_t end = pos;
  size_t last_begin = pos;
  size_t after_newline = pos;
  while (end < text.size()) {
    const Char c = CharAt(text, end);
    if (!In(c.char_class, kAnySpace)) break;
    last_begin = end;
    end = c.end;
    if (c.char_class == CharClass::kNewline) after_newline = end;
  }
  if (after_newline != pos) return after_newline;
  // Before a word the run leaves its last character to it.
  if (end < text.size() && last_begin != pos) return last_begin;
  return end;
}

// ` ?[\p{P}\p{S}]+[\r\n]*` with the run beginning at `run`.
size_t MatchPunctuation(std::string_view text, size_t run) {
  size_t end = RunEnd(text, run, kPunctuationOrSymbol);
  while (end < text.size() && (text[end] == '\r' || text[end] == '\n')) ++end;
  return end;
}

size_t MatchWords(std::string_view text, size_t pos) {
  const Char first = CharAt(text, pos);
  const bool at_end = first.end == text.size();
  if (In(first.char_class, kLetterOrMark)) return RunEnd(text, first.end, kLetterOrMark);
  if (In(first.char_class, kPunctuationOrSymbol)) {
    const bool is_ascii = first.end == pos + 1;
    if (is_ascii && !at_end && IsAsciiLetter(text[first.end])) {
      size_t end = first.end + 1;
      while (end < text.size() && IsAsciiLetter(text[end])) ++end;
      return end;
    }
    return MatchPunctuation(text, pos);
  }
  if (first.char_class != CharClass::kNewline && !at_end) {
    const Char second = CharAt(text, first.end);
    if (In(second.char_class, kLetterOrMark)) return RunEnd(text, second.end, kLetterOrMark);
    if (text[pos] == ' ' && In(second.char_class, kPunctuationOrSymbol)) {
      return MatchPunctuation(text, first.end);
    }
  }
  if (In(first.char_class, kAnySpace)) return MatchWhiteSpace(text, pos);
  return pos;
}

// Every find function returns where the first match at or after text[pos] begins, or the end.

size_t FindNumber(std::string_view text, size_t pos) {
  while (pos < text.size()) {
    const Char c = CharAt(text, pos);
    if (c.char_class == CharClass::kNumber) break;
    pos = c.end;
  }
  return pos;
}

size_t FindCjk(std::string_view text, size_t pos) {
  for (; pos < text.size(); ++pos) {
    // Matching characters have a lead byte from 0xe3 to 0xe9, and no other byte is like that.
    const auto byte = static_cast<uint8_t>(text[pos]);
    if (byte >= 0xe3 && byte <= 0xe9 && MatchCjk(text, pos) != pos) break;
  }
  return pos;
}

size_t FindWord(std::string_view text, size_t pos) {
  while (pos < text.size() && MatchWords(text, pos) == pos) pos = CharAt(text, pos).end;
  return pos;
}

}  // namespace

std::optional<SplitRule> RecogniseSplitRegex(std::string_view regex) {
  if (regex == kNumbersRegex) return SplitRule::kNumbers;
  if (regex == kCjkRegex) return SplitRule::kCjk;
  // The files spell line ends as escapes of the expression or as the characters themselves.
  std::string escaped;
  for (const char c : regex) {
    if (c == '\r') {
      escaped += "\\r";
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  if (escaped == kWordsRegex) return SplitRule::kWords;
  return std::nullopt;
}

size_t PieceEnd(SplitRule rule, std::string_view text, size_t begin) {
  size_t end = begin;
  switch (rule) {
    case SplitRule::kNumbers:
      end = MatchNumbers(text, begin);
      return end != begin ? end : FindNumber(text, begin);
    case SplitRule::kCjk:
      end = MatchCjk(text, begin);
      return end != begin ? end : FindCjk(text, begin);
    case SplitRule::kWords:
      end = MatchWords(text, begin);
      return end != begin ? end : FindWord(text, CharAt(text, begin).end);
  }
  return text.size();
}

}  // namespace deepinfer
