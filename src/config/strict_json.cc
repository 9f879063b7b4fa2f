#include "config/strict_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace deepinfer {
namespace {

using nlohmann::json;

constexpr size_t kMaxShownChars = 80;
constexpr size_t kMaxShownReason = 200;

// Messages go to terminals: whatever a broken file holds must not reach them raw.
std::string Printable(std::string text, size_t max_chars) {
  if (text.size() > max_chars) text = text.substr(0, max_chars) + "...";
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return text;
}

// Builds the document from parser events, so that a duplicate key or too deep a nesting stops the
// parser at once. The parser itself keeps its own stack on the heap.
class DocumentBuilder final : public nlohmann::json_sax<json> {
 public:
  json TakeRoot() { return std::move(root_); }
  const std::string& error() const { return error_; }

  bool null() override { return Add(nullptr) != nullptr; }
  bool boolean(bool value) override { return Add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return Add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return Add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return Add(value) != nullptr;
  }
  bool string(string_t& value) override { return Add(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(json::object()); }
  bool start_array(std::size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    auto& members = open_.back()->get_ref<json::object_t&>();
    const auto [position, is_new] = members.try_emplace(name, nullptr);
    slot_ = &position->second;
    if (!is_new) error_ = fmt::format("duplicate key \"{}\"", Printable(name, kMaxShownChars));
    return is_new;
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    const std::string_view reason = exception.what();
    const size_t tag_end = reason.find("] ");  // "[json.exception.parse_error.101] "
    error_ = Printable(std::string(reason.substr(tag_end == reason.npos ? 0 : tag_end + 2)),
                       kMaxShownReason);
    return false;
  }

 private:
  json* Add(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool Open(json empty) {
    if (open_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
      error_ = fmt::format("arrays and objects nest deeper than {}", kMaxJsonDepth);
      return false;
    }
    open_.push_back(Add(std::move(empty)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  json root_;
  std::vector<json*> open_;  // the arrays and objects around the current position
  json* slot_ = nullptr;     // value of the last key
  std::string error_;
};

}  // namespace

Result<json> ParseStrictJson(std::string_view text, std::string_view what) {
  DocumentBuilder builder;
  try {
    if (json::sax_parse(text.begin(), text.end(), &builder)) return builder.TakeRoot();
  } catch (const std::exception& exception) {
    return MakeError(ErrorCode::kDataLoss, "{} is not valid JSON: {}", what,
                     Printable(exception.what(), kMaxShownReason));
  }
  return MakeError(ErrorCode::kDataLoss, "{} is not valid JSON: {}", what, builder.error());
}

std::string ShownJson(const json& value) {
  return Printable(value.dump(-1, ' ', true, json::error_handler_t::replace), kMaxShownChars);
}

}  // namespace deepinfer
