#include "grammar/regex_escape.h"

#include <string>
#include <utility>

#include "grammar/regex_tree.h"
#include "grammar/utf8.h"

namespace deepinfer::grammar {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

RegexEscape One(uint32_t code_point) { return {CharSet::Of(code_point), code_point}; }

// `digits` hexadecimal digits.
std::optional<uint32_t> ReadHex(RegexReader& reader, size_t digits) {
  uint32_t value = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int digit = HexValue(reader.peek(i));
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  reader.pos += digits;
  return value;
}

// {...} of hexadecimal digits.
std::optional<uint32_t> ReadBracedHex(RegexReader& reader) {
  size_t pos = reader.pos + 1;
  uint32_t value = 0;
  const size_t begin = pos;
  for (; pos < reader.text.size() && HexValue(reader.text[pos]) >= 0; ++pos) {
    value = value * 16 + static_cast<uint32_t>(HexValue(reader.text[pos]));
    if (value > kMaxCodePoint) return std::nullopt;
  }
  if (pos == begin || pos >= reader.text.size() || reader.text[pos] != '}') return std::nullopt;
  reader.pos = pos + 1;
  return value;
}

Result<RegexEscape> CheckedCodePoint(const RegexReader& reader, size_t start,
                                     std::optional<uint32_t> code_point) {
  if (!code_point || (*code_point >= 0xd800 && *code_point <= 0xdfff)) {
    return reader.Fail(ErrorCode::kInvalidArgument, start,
                       "this escape names no Unicode character");
  }
  return One(*code_point);
}

Result<RegexEscape> ParseHexEscape(RegexReader& reader, size_t start, char letter) {
  if (reader.peek() == '{') return CheckedCodePoint(reader, start, ReadBracedHex(reader));
  std::optional<uint32_t> value = ReadHex(reader, letter == 'x' ? 2 : 4);
  const bool high = value && *value >= 0xd800 && *value <= 0xdbff;
  if (letter == 'u' && high && reader.peek() == '\\' && reader.peek(1) == 'u') {
    reader.pos += 2;
    const std::optional<uint32_t> low = ReadHex(reader, 4);
    if (low && *low >= 0xdc00 && *low <= 0xdfff) {
      value = 0x10000 + ((*value - 0xd800) << 10) + (*low - 0xdc00);
    }
  }
  return CheckedCodePoint(reader, start, value);
}

Result<RegexEscape> ParseProperty(RegexReader& reader, size_t start, bool negated) {
  std::string_view name = reader.text.substr(reader.pos, 1);
  if (reader.peek() == '{') {
    const size_t end = reader.text.find('}', reader.pos);
    if (end == reader.text.npos) {
      return reader.Fail(ErrorCode::kInvalidArgument, start, "this \\p has no }");
    }
    name = reader.text.substr(reader.pos + 1, end - reader.pos - 1);
    reader.pos = end + 1;
  } else {
    reader.pos += name.size();
  }
  if (name.starts_with('^')) {
    negated = !negated;
    name.remove_prefix(1);
  }
  std::optional<CharSet> set = UnicodeProperty(name);
  if (!set) {
    return reader.Fail(ErrorCode::kUnsupported, start,
                       fmt::format("Unicode property '{}' is not supported (general categories, "
                                   "Any, ASCII, Assigned and White_Space are)",
                                   name));
  }
  return RegexEscape{negated ? set->Complement() : std::move(*set), std::nullopt};
}

struct SimpleEscape {
  char letter;
  uint32_t code_point;
};
constexpr SimpleEscape kSimpleEscapes[] = {{'t', 9},  {'n', 10}, {'r', 13}, {'v', 11},
                                           {'f', 12}, {'a', 7},  {'e', 27}};

// A class member: one character, or an escape for many.
Result<RegexEscape> ParseMember(RegexReader& reader) {
  if (reader.peek() == '\\') {
    if (reader.peek(1) == 'b') {
      reader.pos += 2;
      return One(8);
    }
    return ParseRegexEscape(reader);
  }
  if (reader.peek() == '[' && reader.peek(1) == ':') {
    const size_t end = reader.text.find(":]", reader.pos + 2);
    const std::string_view name = reader.text.substr(reader.pos + 2, end - reader.pos - 2);
    if (end != reader.text.npos && name.find_first_of("[]") == name.npos) {
      return reader.Fail(ErrorCode::kUnsupported, reader.pos,
                         fmt::format("POSIX class [:{}:] is not supported", name));
    }
  }
  const Utf8Char c = DecodeUtf8(reader.text, reader.pos);
  reader.pos += c.length;
  return One(c.code_point);
}

}  // namespace

CharSet RegexClass(char letter) {
  switch (letter) {
    case 'd':
      return {{'0', '9'}};
    case 'w':
      return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    case 's': {
      CharSet set = *UnicodeProperty("White_Space");
      set = set.Minus(CharSet::Of(0x85));
      set.Add(0xfeff, 0xfeff);
      return set;
    }
    default:  // 'n': line ends
      return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  }
}

Result<RegexEscape> ParseRegexEscape(RegexReader& reader) {
  const size_t start = reader.pos++;
  if (reader.at_end()) {
    return reader.Fail(ErrorCode::kInvalidArgument, start, "\\ at the end of the expression");
  }
  const char letter = reader.text[reader.pos++];
  for (const SimpleEscape& simple : kSimpleEscapes) {
    if (simple.letter == letter) return One(simple.code_point);
  }
  switch (letter) {
    case 'd':
    case 'w':
    case 's':
      return RegexEscape{RegexClass(letter), std::nullopt};
    case 'D':
    case 'W':
    case 'S':
      return RegexEscape{RegexClass(static_cast<char>(letter + 32)).Complement(), std::nullopt};
    case 'p':
    case 'P':
      return ParseProperty(reader, start, letter == 'P');
    case 'x':
    case 'u':
      return ParseHexEscape(reader, start, letter);
    case 'c': {
      const char control = reader.peek();
      const bool known = (control >= 'a' && control <= 'z') || (control >= 'A' && control <= 'Z');
      if (!known) break;
      ++reader.pos;
      return One(static_cast<uint32_t>(control) & 31);
    }
    case '0':
      if (reader.peek() >= '0' && reader.peek() <= '9') break;
      return One(0);
    default:
      break;
  }
  const uint8_t byte = static_cast<uint8_t>(letter);
  const bool alphanumeric = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                            (byte >= 'a' && byte <= 'z') || byte >= 0x80;
  if (alphanumeric) {
    const std::string shown = byte < 0x80 ? std::string(1, letter) : std::string("(non-ASCII)");
    return reader.Fail(ErrorCode::kUnsupported, start,
                       fmt::format("escape \\{} is not supported", shown));
  }
  return One(byte);
}

Result<CharSet> ParseRegexClass(RegexReader& reader, bool ignore_case) {
  const size_t start = reader.pos++;
  const bool negated = reader.Take('^');
  CharSet set;
  while (true) {
    if (reader.at_end()) {
      return reader.Fail(ErrorCode::kInvalidArgument, start, "this [ has no ]");
    }
    if (reader.Take(']')) break;
    const size_t member = reader.pos;
    DI_ASSIGN_OR_RETURN(RegexEscape low, ParseMember(reader));
    const bool range = reader.peek() == '-' && reader.peek(1) != ']' && reader.peek(1) != '\0';
    if (!range) {
      set.Add(low.set);
      continue;
    }
    ++reader.pos;
    DI_ASSIGN_OR_RETURN(const RegexEscape high, ParseMember(reader));
    if (!low.code_point || !high.code_point || *low.code_point > *high.code_point) {
      return reader.Fail(ErrorCode::kInvalidArgument, member, "this range is out of order");
    }
    set.Add(*low.code_point, *high.code_point);
  }
  if (ignore_case) set = AddCaseVariants(set);
  return negated ? set.Complement() : set;
}

}  // namespace deepinfer::grammar
