// Reading UTF-8 that may be broken, one character at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace deepinfer {

enum class Utf8Status : uint8_t {
  kValid,
  kInvalid,    // these bytes begin no valid sequence, whatever follows
  kTruncated,  // a proper prefix of a valid sequence, at the end of the text
};

struct Utf8Step {
  uint32_t code_point;  // only for kValid
  uint8_t length;       // bytes; unless kValid, those of the maximal valid prefix, at least 1
  Utf8Status status;
};

// The character at text[pos]; pos < text.size(). Surrogates, overlong forms and values above
// U+10FFFF are invalid (Unicode standard, table 3-7).
inline Utf8Step ReadUtf8(std::string_view text, size_t pos) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[pos + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, Utf8Status::kValid};
  if (lead < 0xc2 || lead > 0xf4) return {0, 1, Utf8Status::kInvalid};
  const uint8_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  uint32_t code_point = lead & (0x7fu >> length);
  // The first continuation byte's range rules out overlong forms, surrogates and what lies above.
  uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (uint8_t i = 1; i < length; ++i) {
    if (pos + i == text.size()) return {0, i, Utf8Status::kTruncated};
    const uint8_t next = byte(i);
    if (next < low || next > high) return {0, i, Utf8Status::kInvalid};
    code_point = (code_point << 6) | (next & 0x3fu);
    low = 0x80;
    high = 0xbf;
  }
  return {code_point, length, Utf8Status::kValid};
}

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

// Appends the text with each maximal invalid part replaced by U+FFFD, and returns how many bytes at
// its end, at most three, are kTruncated and were left out.
inline size_t AppendRepaired(std::string_view text, std::string& out) {
  size_t pos = 0;
  size_t valid_from = 0;
  while (pos < text.size()) {
    const Utf8Step step = ReadUtf8(text, pos);
    if (step.status != Utf8Status::kValid) {
      out.append(text, valid_from, pos - valid_from);
      if (step.status == Utf8Status::kTruncated) return step.length;
      out.append(kReplacementCharacter);
      valid_from = pos + step.length;
    }
    pos += step.length;
  }
  out.append(text, valid_from, pos - valid_from);
  return 0;
}

// The text with every maximal invalid part, a truncated end too, replaced by U+FFFD.
inline std::string RepairUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  if (AppendRepaired(text, out) != 0) out.append(kReplacementCharacter);
  return out;
}

// Appends a code point of at most U+10FFFF.
inline void AppendUtf8(uint32_t code_point, std::string& out) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3f));
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

}  // namespace deepinfer
