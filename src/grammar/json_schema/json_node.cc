#include "grammar/json_schema/json_node.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

namespace deepinfer::grammar {
namespace {

constexpr size_t kMaxNumberText = 1000;

// Builds nodes from the parser's events, without recursion.
class NodeBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  NodeBuilder(std::string_view what, const Limits& limits) : what_(what), limits_(limits) {}

  JsonNode TakeRoot() { return std::move(root_); }
  Error TakeError() { return std::move(error_); }

  bool null() override { return Add(JsonNode::Kind::kNull); }
  bool boolean(bool value) override {
    return Add(value ? JsonNode::Kind::kTrue : JsonNode::Kind::kFalse);
  }
  bool number_integer(number_integer_t value) override {
    return Add(JsonNode::Kind::kNumber, std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(JsonNode::Kind::kNumber, std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    Result<std::string> canonical = CanonicalNumber(text);
    if (!canonical) {
      error_ = {canonical.error().code, fmt::format("{}: {}", what_, canonical.error().message)};
      return false;
    }
    return Add(JsonNode::Kind::kNumber, std::move(*canonical));
  }
  bool string(string_t& text) override {
    return Add(JsonNode::Kind::kString, std::exchange(text, {}));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(JsonNode::Kind::kObject); }
  bool key(string_t& key) override {
    open_.back().members.push_back({key, {}});
    return true;
  }
  bool end_object() override {
    std::vector<std::string_view> keys;
    for (const JsonMember& member : open_.back().members) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) {
      const std::string key(*twice);
      open_.back().members.pop_back();
      error_ = {ErrorCode::kInvalidArgument, fmt::format("{}: {}: key \"{}\" stands twice", what_,
                                                         Path(), CanonicalString(key))};
      return false;
    }
    return Close();
  }
  bool start_array(size_t) override { return Open(JsonNode::Kind::kArray); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The library's message begins with its own name for the error, in brackets.
    std::string_view message = error.what();
    message.remove_prefix(std::min(message.find("] ") + 2, message.size()));
    error_ = {ErrorCode::kInvalidArgument,
              fmt::format("{}: no JSON at byte {}: {}", what_, position, message)};
    return false;
  }

 private:
  bool Add(JsonNode::Kind kind, std::string text = {}) {
    JsonNode node;
    node.kind = kind;
    node.text = std::move(text);
    Place(std::move(node));
    return true;
  }
  void Place(JsonNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().is(JsonNode::Kind::kObject)) {
      open_.back().members.back().value = std::move(node);
    } else {
      open_.back().items.push_back(std::move(node));
    }
  }
  bool Open(JsonNode::Kind kind) {
    if (open_.size() >= limits_.max_depth) {
      error_ = {ErrorCode::kResourceExhausted,
                fmt::format("{}: more than {} arrays and objects inside each other", what_,
                            limits_.max_depth)};
      return false;
    }
    open_.emplace_back().kind = kind;
    return true;
  }
  bool Close() {
    JsonNode node = std::move(open_.back());
    open_.pop_back();
    Place(std::move(node));
    return true;
  }
  std::string Path() const {
    std::string path = "#";
    for (size_t i = 0; i + 1 < open_.size(); ++i) {
      const JsonNode& node = open_[i];
      path += "/" + (node.is(JsonNode::Kind::kArray) ? std::to_string(node.items.size())
                                                     : PointerToken(node.members.back().key));
    }
    return path;
  }

  const std::string_view what_;
  const Limits& limits_;
  JsonNode root_;
  std::vector<JsonNode> open_;
  Error error_;
};

void AppendCanonical(const JsonNode& node, std::string& out) {
  switch (node.kind) {
    case JsonNode::Kind::kNull:
      out += "null";
      break;
    case JsonNode::Kind::kFalse:
      out += "false";
      break;
    case JsonNode::Kind::kTrue:
      out += "true";
      break;
    case JsonNode::Kind::kNumber:
      out += node.text;
      break;
    case JsonNode::Kind::kString:
      out += '"';
      AppendCanonicalString(node.text, out);
      out += '"';
      break;
    case JsonNode::Kind::kArray:
      for (size_t i = 0; i < node.items.size(); ++i) {
        out += i == 0 ? '[' : ',';
        AppendCanonical(node.items[i], out);
      }
      out += node.items.empty() ? "[]" : "]";
      break;
    case JsonNode::Kind::kObject:
      for (size_t i = 0; i < node.members.size(); ++i) {
        out += i == 0 ? "{\"" : ",\"";
        AppendCanonicalString(node.members[i].key, out);
        out += "\":";
        AppendCanonical(node.members[i].value, out);
      }
      out += node.members.empty() ? "{}" : "}";
      break;
  }
}

}  // namespace

const JsonNode* JsonNode::Find(std::string_view key) const {
  for (const JsonMember& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Result<JsonNode> ParseJsonNode(std::string_view text, std::string_view what, const Limits& limits) {
  if (text.size() > limits.max_text_bytes) {
    return MakeError(ErrorCode::kResourceExhausted, "{} has {} bytes, more than {}", what,
                     text.size(), limits.max_text_bytes);
  }
  NodeBuilder builder(what, limits);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return tl::unexpected<Error>(builder.TakeError());
  }
  return builder.TakeRoot();
}

Result<std::string> CanonicalNumber(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::string digits;
  int64_t point = -1;  // digits before it
  size_t i = 0;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      point = static_cast<int64_t>(digits.size());
    } else {
      digits += text[i];
    }
  }
  if (point < 0) point = static_cast<int64_t>(digits.size());
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return std::string("0");
  if (i < text.size()) {
    std::string_view exponent = text.substr(i + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    int64_t value = 0;
    const auto [end, error] =
        std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
    constexpr int64_t kMaxExponent = 1'000'000'000;
    if (error != std::errc() || value > kMaxExponent || value < -kMaxExponent) {
      return MakeError(ErrorCode::kResourceExhausted, "number {} is too large or too small",
                       text.substr(0, 80));
    }
    point += value;
  }
  digits.erase(digits.find_last_not_of('0') + 1);
  digits.erase(0, first);
  point -= static_cast<int64_t>(first);
  const int64_t size = static_cast<int64_t>(digits.size());
  const int64_t limit = static_cast<int64_t>(kMaxNumberText);
  if (size > limit || point > limit || point < -limit) {
    return MakeError(ErrorCode::kResourceExhausted, "number {} has more than {} digits",
                     text.substr(0, 80), kMaxNumberText);
  }
  std::string result = negative ? "-" : "";
  if (point <= 0) {
    result += "0." + std::string(static_cast<size_t>(-point), '0') + digits;
  } else if (point >= size) {
    result += digits + std::string(static_cast<size_t>(point - size), '0');
  } else {
    result += digits.substr(0, static_cast<size_t>(point)) + "." +
              digits.substr(static_cast<size_t>(point));
  }
  return result;
}

void AppendCanonicalString(std::string_view text, std::string& out) {
  constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  for (const char c : text) {
    const size_t index = kShort.find(c);
    if (index != std::string_view::npos) {
      out += '\\';
      out += kLetters[index];
    } else if (static_cast<uint8_t>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<uint8_t>(c));
    } else {
      out += c;
    }
  }
}

std::string CanonicalString(std::string_view text) {
  std::string result;
  AppendCanonicalString(text, result);
  return result;
}

std::string CanonicalJson(const JsonNode& node) {
  std::string result;
  AppendCanonical(node, result);
  return result;
}

std::string PointerToken(std::string_view key) {
  std::string result;
  for (const char c : key) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace deepinfer::grammar
