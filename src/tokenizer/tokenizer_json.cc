#include "tokenizer/tokenizer_json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace deepinfer {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxDepth = 32;

// Receives the parser's events. A false return stops the parser; error() then says why.
class TokenizerJsonReader : public nlohmann::json_sax<Json> {
 public:
  explicit TokenizerJsonReader(TokenizerFile& file) : file_(file) {}

  bool null() override { return Value(nullptr); }
  bool boolean(bool value) override { return Value(value); }
  bool number_integer(number_integer_t value) override { return Integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return Integer(value); }
  bool number_float(number_float_t value, const string_t&) override { return Value(value); }
  bool binary(binary_t&) override { return Fail("a binary value"); }

  bool string(string_t& value) override {
    switch (table_) {
      case Table::kMerges:
        return Merge(value);
      case Table::kMergePair:
        pair_.push_back(std::move(value));
        return pair_.size() <= 2 || FailMerge("has more than two parts");
      default:
        return Value(std::move(value));
    }
  }

  bool start_object(size_t) override {
    if (table_ != Table::kNone) return FailValue("an object");
    const bool is_vocab = AtModelKey("vocab");
    if (!Open(Json::object())) return false;
    if (is_vocab) table_ = Table::kVocab;
    return true;
  }

  bool key(string_t& value) override {
    if (table_ == Table::kVocab) {
      file_.vocab.push_back({std::move(value), -1});
      return true;
    }
    if (open_.back()->contains(value)) return Fail(fmt::format("repeats the key \"{}\"", value));
    key_ = std::move(value);
    return true;
  }

  bool end_object() override { return Close(); }

  bool start_array(size_t) override {
    if (table_ == Table::kMerges) {
      table_ = Table::kMergePair;
      pair_.clear();
      return true;
    }
    if (table_ != Table::kNone) return FailValue("an array");
    const bool is_merges = AtModelKey("merges");
    if (!Open(Json::array())) return false;
    if (is_merges) table_ = Table::kMerges;
    return true;
  }

  bool end_array() override {
    if (table_ != Table::kMergePair) return Close();
    table_ = Table::kMerges;
    if (pair_.size() != 2) return FailMerge("has fewer than two parts");
    file_.merges.push_back({std::move(pair_[0]), std::move(pair_[1])});
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
    return Fail(e.what());
  }

  Json TakeRoot() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  // Which table the next event belongs to.
  enum class Table { kNone, kVocab, kMerges, kMergePair };

  bool AtModelKey(std::string_view name) const {
    return open_.size() == 2 && key_ == name && root_.is_object() && root_.contains("model") &&
           open_[1] == &root_["model"];
  }

  template <typename T>
  bool Integer(T value) {
    if (table_ != Table::kVocab) return Value(value);
    if (value < T{0} || value >= static_cast<T>(kMaxTokenIds)) {
      return FailValue(fmt::format("the id {}", value));
    }
    file_.vocab.back().id = static_cast<int32_t>(value);
    return true;
  }

  template <typename T>
  bool Value(T value) {
    if (table_ != Table::kNone) return FailValue(Json(std::move(value)).dump());
    Place(Json(std::move(value)));
    return true;
  }

  // "a b", the older of the two forms of a merge.
  bool Merge(const std::string& text) {
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      return FailMerge(fmt::format("is {}, not two tokens around one space", QuotedExcerpt(text)));
    }
    file_.merges.push_back({text.substr(0, space), text.substr(space + 1)});
    return true;
  }

  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) return &parent.emplace_back(std::move(value));
    return &(parent[key_] = std::move(value));
  }

  bool Open(Json container) {
    if (open_.size() == kMaxDepth) return Fail(fmt::format("nests deeper than {}", kMaxDepth));
    open_.push_back(Place(std::move(container)));
    return true;
  }

  bool Close() {
    if (table_ != Table::kNone) *open_.back() = nullptr;
    table_ = Table::kNone;
    open_.pop_back();
    return true;
  }

  bool Fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }
  bool FailMerge(const std::string& message) {
    return Fail(fmt::format("model.merges[{}] {}", file_.merges.size(), message));
  }
  bool FailValue(const std::string& value) {
    if (table_ != Table::kVocab) {
      return FailMerge("holds something other than two strings: " + QuotedExcerpt(value));
    }
    return Fail(fmt::format("model.vocab: token {} has {}; an id must be an integer in [0, {})",
                            QuotedExcerpt(file_.vocab.back().spelling), value, kMaxTokenIds));
  }

  TokenizerFile& file_;
  Json root_;
  std::vector<Json*> open_;  // the containers that have begun, outermost first
  std::string key_;          // the last one of the innermost object
  Table table_ = Table::kNone;
  std::vector<std::string> pair_;
  std::string error_;
};

}  // namespace

Result<Json> ParseTokenizerJson(std::string_view json, TokenizerFile& file) {
  TokenizerJsonReader reader(file);
  if (!Json::sax_parse(json.begin(), json.end(), &reader)) {
    return MakeError(ErrorCode::kDataLoss, "tokenizer.json: {}", reader.error());
  }
  return reader.TakeRoot();
}

}  // namespace deepinfer
