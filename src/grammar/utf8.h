// UTF-8 of grammar sources and tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace deepinfer::grammar {

struct Utf8Char {
  uint32_t code_point;
  uint32_t length;  // bytes; 0 where no valid character begins
};

// The character at text[pos]; pos < text.size(). Surrogates, overlong forms and values above
// U+10FFFF are not valid.
inline Utf8Char DecodeUtf8(std::string_view text, size_t pos) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[pos + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const uint32_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead < 0xc2 || lead > 0xf4 || pos + length > text.size()) return {0, 0};
  uint32_t code_point = lead & (0x7fu >> length);
  for (uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    code_point = (code_point << 6) | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kFirstOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < kFirstOfLength[length] || code_point > 0x10ffff || surrogate) return {0, 0};
  return {code_point, length};
}

// Appends a code point of at most U+10FFFF.
inline void AppendUtf8(uint32_t code_point, std::string& out) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
    return;
  }
  const int tails = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  put((0xff00u >> (tails + 1) & 0xff) | code_point >> (6 * tails));
  for (int i = tails - 1; i >= 0; --i) put(0x80 | (code_point >> (6 * i) & 0x3f));
}

}  // namespace deepinfer::grammar
