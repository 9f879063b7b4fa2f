// Where in a grammar's source something is, for error messages.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace deepinfer::grammar {

// "line 2, column 5" of the byte at `offset`: both count from 1, columns in characters.
inline std::string PositionText(std::string_view source, size_t offset) {
  const std::string_view before = source.substr(0, std::min(offset, source.size()));
  const size_t lines = static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t line_start = lines == 0 ? 0 : before.rfind('\n') + 1;
  size_t column = 1;
  for (const char c : before.substr(line_start)) column += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return fmt::format("line {}, column {}", lines + 1, column);
}

}  // namespace deepinfer::grammar
