#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "chat/chat_json.h"

namespace deepinfer {
namespace {

// Python's repr(float): shortest digits that read back, an exponent below 1e-4 and from 1e16.
std::string WriteReal(const std::string& text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc::result_out_of_range) {
    // Too small reads as zero; too large has no form that reads back.
    value = std::strtod(text.c_str(), nullptr);
    if (std::isinf(value)) return text;
  }
  char buffer[40];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(scientific.ptr - buffer));
  const size_t e = shortest.find('e');
  int exponent = 0;
  const char* digits = shortest.data() + e + 1;
  std::from_chars(*digits == '+' ? digits + 1 : digits, scientific.ptr, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string WriteNumber(const std::string& text) {
  if (text.find_first_of(".eE") != std::string::npos) return WriteReal(text);
  return text == "-0" ? "0" : text;
}

void AppendString(std::string_view text, std::string& out) {
  out += '"';
  AppendJsonEscaped(text, out);
  out += '"';
}

void AppendValue(const JsonValue& value, std::string& out) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      out += "null";
      break;
    case JsonValue::Kind::kFalse:
      out += "false";
      break;
    case JsonValue::Kind::kTrue:
      out += "true";
      break;
    case JsonValue::Kind::kNumber:
      out += WriteNumber(value.text);
      break;
    case JsonValue::Kind::kString:
      AppendString(value.text, out);
      break;
    case JsonValue::Kind::kArray: {
      out += '[';
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out += ", ";
        AppendValue(value.items[i], out);
      }
      out += ']';
      break;
    }
    case JsonValue::Kind::kObject: {
      out += '{';
      for (size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) out += ", ";
        AppendString(value.members[i].first, out);
        out += ": ";
        AppendValue(value.members[i].second, out);
      }
      out += '}';
      break;
    }
  }
}

}  // namespace

std::string WriteJson(const JsonValue& value) {
  std::string out;
  AppendValue(value, out);
  return out;
}

void AppendJsonEscaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<uint8_t>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
}

}  // namespace deepinfer
