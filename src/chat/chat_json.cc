#include "chat/chat_json.h"

#include <charconv>
#include <cstdint>
#include <unordered_map>

namespace deepinfer {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Bytes of the valid UTF-8 character at the start of `text` (Unicode table 3-7), or 0.
size_t CharacterBytes(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const auto is_tail = [&](size_t i) { return (at(i) & 0xc0) == 0x80; };
  const unsigned lead = at(0);
  if (lead < 0x80) return text.empty() ? 0 : 1;
  if (lead < 0xc2 || lead > 0xf4 || !is_tail(1)) return 0;
  if (lead < 0xe0) return 2;
  if ((lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) > 0x9f)) return 0;
  if ((lead == 0xf0 && at(1) < 0x90) || (lead == 0xf4 && at(1) > 0x8f)) return 0;
  if (!is_tail(2)) return 0;
  if (lead < 0xf0) return 3;
  return is_tail(3) ? 4 : 0;
}

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

class JsonParser {
 public:
  JsonParser(std::string_view text, bool allow_half_surrogates)
      : text_(text), allow_half_surrogates_(allow_half_surrogates) {}

  // False: problem() says why.
  bool Parse(JsonValue& value, int depth) {
    if (!ParseValue(value, depth)) return false;
    SkipBlanks();
    return at_ == text_.size() || Fail("text after the value");
  }
  const std::string& problem() const { return problem_; }

 private:
  bool Fail(std::string_view what) {
    problem_ = fmt::format("{} at byte {}", what, at_);
    return false;
  }
  bool Next(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void SkipBlanks() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
  }

  bool ParseValue(JsonValue& value, int depth) {
    SkipBlanks();
    if (at_ == text_.size()) return Fail("value missing");
    switch (text_[at_]) {
      case '{':
        return ParseObject(value, depth + 1);
      case '[':
        return ParseArray(value, depth + 1);
      case '"':
        value.kind = JsonValue::Kind::kString;
        return ParseString(value.text);
      case 't':
        return ParseWord("true", JsonValue::Kind::kTrue, value);
      case 'f':
        return ParseWord("false", JsonValue::Kind::kFalse, value);
      case 'n':
        return ParseWord("null", JsonValue::Kind::kNull, value);
      default:
        return ParseNumber(value);
    }
  }

  bool ParseWord(std::string_view word, JsonValue::Kind kind, JsonValue& value) {
    if (text_.substr(at_, word.size()) != word) return Fail("not a JSON value");
    at_ += word.size();
    value.kind = kind;
    return true;
  }

  bool ParseDigits() {
    if (at_ == text_.size() || !IsDigit(text_[at_])) return Fail("digit missing");
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
    return true;
  }

  bool ParseNumber(JsonValue& value) {
    const size_t begin = at_;
    Next('-');
    if (at_ == text_.size() || !IsDigit(text_[at_])) {
      at_ = begin;
      return Fail("not a JSON value");
    }
    if (!Next('0') && !ParseDigits()) return false;
    if (Next('.') && !ParseDigits()) return false;
    if (Next('e') || Next('E')) {
      if (!Next('+')) Next('-');
      if (!ParseDigits()) return false;
    }
    value.kind = JsonValue::Kind::kNumber;
    value.text = text_.substr(begin, at_ - begin);
    return true;
  }

  bool ParseHex(uint32_t& code) {
    if (text_.size() - at_ < 4) return Fail("escape cut short");
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, begin + 4, code, 16);
    if (error != std::errc() || end != begin + 4) return Fail("escape without four hex digits");
    at_ += 4;
    return true;
  }

  bool ParseUnicodeEscape(std::string& out) {
    uint32_t code = 0;
    if (!ParseHex(code)) return false;
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      const size_t before = at_;
      at_ += 2;
      uint32_t low = 0;
      if (!ParseHex(low)) return false;
      if (low >= 0xdc00 && low < 0xe000) {
        AppendUtf8(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), out);
        return true;
      }
      at_ = before;
    }
    if (code >= 0xd800 && code < 0xe000) {
      if (!allow_half_surrogates_) return Fail("escape of half a surrogate pair");
      code = 0xfffd;
    }
    AppendUtf8(code, out);
    return true;
  }

  bool ParseEscape(std::string& out) {
    if (at_ == text_.size()) return Fail("escape cut short");
    const char c = text_[at_++];
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out += c;
        return true;
      case 'b':
        out += '\b';
        return true;
      case 'f':
        out += '\f';
        return true;
      case 'n':
        out += '\n';
        return true;
      case 'r':
        out += '\r';
        return true;
      case 't':
        out += '\t';
        return true;
      case 'u':
        return ParseUnicodeEscape(out);
      default:
        --at_;
        return Fail("unknown escape");
    }
  }

  bool ParseString(std::string& out) {
    ++at_;
    out.clear();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (static_cast<uint8_t>(c) < 0x20) return Fail("control character in a string");
      if (c == '\\') {
        ++at_;
        if (!ParseEscape(out)) return false;
        continue;
      }
      const size_t bytes = CharacterBytes(text_.substr(at_, 4));
      if (bytes == 0) return Fail("invalid UTF-8");
      out.append(text_, at_, bytes);
      at_ += bytes;
    }
    return Fail("string without end");
  }

  bool ParseArray(JsonValue& value, int depth) {
    if (depth > kMaxJsonDepth) return Fail(fmt::format("nesting deeper than {}", kMaxJsonDepth));
    value.kind = JsonValue::Kind::kArray;
    ++at_;
    SkipBlanks();
    if (Next(']')) return true;
    while (true) {
      if (!ParseValue(value.items.emplace_back(), depth)) return false;
      SkipBlanks();
      if (Next(']')) return true;
      if (!Next(',')) return Fail("',' or ']' missing");
    }
  }

  bool ParseObject(JsonValue& value, int depth) {
    if (depth > kMaxJsonDepth) return Fail(fmt::format("nesting deeper than {}", kMaxJsonDepth));
    value.kind = JsonValue::Kind::kObject;
    ++at_;
    SkipBlanks();
    if (Next('}')) return true;
    std::unordered_map<std::string, size_t> places;
    while (true) {
      SkipBlanks();
      std::string key;
      if (at_ == text_.size() || text_[at_] != '"') return Fail("key missing");
      if (!ParseString(key)) return false;
      SkipBlanks();
      if (!Next(':')) return Fail("':' missing");
      JsonValue member;
      if (!ParseValue(member, depth)) return false;
      const auto [place, is_new] = places.try_emplace(key, value.members.size());
      if (is_new) {
        value.members.emplace_back(std::move(key), std::move(member));
      } else {
        value.members[place->second].second = std::move(member);
      }
      SkipBlanks();
      if (Next('}')) return true;
      if (!Next(',')) return Fail("',' or '}' missing");
    }
  }

  std::string_view text_;
  bool allow_half_surrogates_;
  size_t at_ = 0;
  std::string problem_;
};

}  // namespace

JsonValue::JsonValue() = default;
JsonValue::JsonValue(const JsonValue&) = default;
JsonValue::JsonValue(JsonValue&&) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue&) = default;
JsonValue& JsonValue::operator=(JsonValue&&) noexcept = default;
JsonValue::~JsonValue() = default;

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

Result<JsonValue> ParseJson(std::string_view text) {
  JsonParser parser(text, /*allow_half_surrogates=*/false);
  JsonValue value;
  if (!parser.Parse(value, 0))
    return MakeError(ErrorCode::kInvalidArgument, "{}", parser.problem());
  return value;
}

std::string CheckJson(std::string_view text, int depth) {
  JsonParser parser(text, /*allow_half_surrogates=*/true);
  JsonValue value;
  return parser.Parse(value, depth) ? std::string() : parser.problem();
}

}  // namespace deepinfer
