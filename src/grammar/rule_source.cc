#include "grammar/rule_source.h"

#include <algorithm>

#include "grammar/utf8.h"

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kMaxNumber = 1'000'000'000;

std::optional<uint32_t> ReadHex(RuleSource& source, size_t digits) {
  uint64_t value = 0;
  for (size_t i = 0; i < digits; ++i) {
    const char c = source.peek(i);
    const bool digit = c >= '0' && c <= '9';
    const char lower = static_cast<char>(c | 32);
    if (!digit && (lower < 'a' || lower > 'f')) return std::nullopt;
    value = value * 16 + static_cast<uint64_t>(digit ? c - '0' : lower - 'a' + 10);
  }
  if (value > kMaxCodePoint || (value >= 0xd800 && value <= 0xdfff)) return std::nullopt;
  source.pos += digits;
  return static_cast<uint32_t>(value);
}

}  // namespace

Status RuleSource::CheckText(const Limits& limits) const {
  if (text_.size() > limits.max_text_bytes) {
    return MakeError(ErrorCode::kResourceExhausted, "{}: it has {} bytes, more than {}", format_,
                     text_.size(), limits.max_text_bytes);
  }
  for (size_t at = 0; at < text_.size();) {
    const uint32_t length = DecodeUtf8(text_, at).length;
    if (length == 0) return Fail(ErrorCode::kInvalidArgument, at, "it is not valid UTF-8");
    at += length;
  }
  return {};
}

Result<uint32_t> RuleSource::ReadNumber() {
  const size_t start = pos;
  uint64_t value = 0;
  for (; peek() >= '0' && peek() <= '9'; ++pos) {
    value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(peek() - '0'),
                               uint64_t{kMaxNumber} + 1);
  }
  if (pos == start) return Fail(ErrorCode::kInvalidArgument, start, "a number is missing here");
  if (value > kMaxNumber) {
    return Fail(ErrorCode::kInvalidArgument, start, "this number exceeds {}", kMaxNumber);
  }
  return static_cast<uint32_t>(value);
}

std::optional<uint32_t> RuleSource::ReadEscape() {
  const char letter = peek();
  if (at_end()) return std::nullopt;
  ++pos;
  switch (letter) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'x':
      return ReadHex(*this, 2);
    case 'u':
      return ReadHex(*this, 4);
    case 'U':
      return ReadHex(*this, 8);
    default:
      constexpr std::string_view kThemselves = "\\\"'[]/-^";
      if (kThemselves.find(letter) == kThemselves.npos) return std::nullopt;
      return static_cast<uint32_t>(letter);
  }
}

Status RuleNames::CheckAllDefined(const RuleSource& source) const {
  const Named* first = nullptr;
  std::string_view name;
  for (const auto& [candidate, named] : rules_) {
    if (ir_.has_body(named.rule) || (first != nullptr && first->first_use <= named.first_use)) {
      continue;
    }
    first = &named;
    name = candidate;
  }
  if (first == nullptr) return {};
  return source.Fail(ErrorCode::kInvalidArgument, first->first_use, "rule {} is not defined", name);
}

}  // namespace deepinfer::grammar
