#include "tokenizer/tokenizer_file.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

using Json = nlohmann::json;

std::string Show(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr size_t kMaxShown = 200;
  return text.size() <= kMaxShown ? text : RepairUtf8(text.substr(0, kMaxShown)) + "...";
}

// The value at `key`; null where `object` lacks it.
const Json& At(const Json& object, const char* key) {
  static const Json kNull;
  const auto it = object.find(key);
  return it == object.end() ? kNull : *it;
}

Status RequireObject(const Json& value, const std::string& path) {
  if (value.is_object()) return {};
  return MakeError(ErrorCode::kDataLoss, "tokenizer.json: {} is {}; it must be an object", path,
                   Show(value));
}

Status RequireOneOf(const Json& object, const std::string& path, const char* key,
                    std::initializer_list<Json> allowed) {
  const Json& value = At(object, key);
  std::string names;
  for (const Json& candidate : allowed) {
    if (value == candidate) return {};
    names += (names.empty() ? "" : " or ") + Show(candidate);
  }
  return MakeError(ErrorCode::kUnsupported, "tokenizer.json: {}{} is {}; only {} is supported",
                   path, key, Show(value), names);
}

Status CheckModel(const Json& model) {
  DI_RETURN_IF_ERROR(RequireObject(model, "model"));
  DI_RETURN_IF_ERROR(RequireOneOf(model, "model.", "type", {"BPE"}));
  DI_RETURN_IF_ERROR(RequireOneOf(model, "model.", "dropout", {nullptr, 0.0}));
  DI_RETURN_IF_ERROR(RequireOneOf(model, "model.", "continuing_subword_prefix", {nullptr, ""}));
  DI_RETURN_IF_ERROR(RequireOneOf(model, "model.", "end_of_word_suffix", {nullptr, ""}));
  DI_RETURN_IF_ERROR(RequireOneOf(model, "model.", "byte_fallback", {nullptr, false}));
  DI_RETURN_IF_ERROR(RequireOneOf(model, "model.", "ignore_merges", {nullptr, false}));
  for (const char* key : {"vocab", "merges"}) {
    // The parser leaves null where it streamed the table.
    const auto it = model.find(key);
    if (it != model.end() && it->is_null()) continue;
    return MakeError(ErrorCode::kDataLoss, "tokenizer.json: model.{} is {}; it must be an {}", key,
                     it == model.end() ? "missing" : Show(*it),
                     std::string_view(key) == "vocab" ? "object" : "array");
  }
  return {};
}

Result<SplitRule> ReadSplit(const Json& split, const std::string& path) {
  DI_RETURN_IF_ERROR(RequireOneOf(split, path, "behavior", {"Isolated"}));
  DI_RETURN_IF_ERROR(RequireOneOf(split, path, "invert", {nullptr, false}));
  const Json& pattern = At(split, "pattern");
  const Json& regex = pattern.is_object() ? At(pattern, "Regex") : pattern;
  if (!pattern.is_object() || !regex.is_string()) {
    return MakeError(ErrorCode::kUnsupported,
                     "tokenizer.json: {}pattern is {}; only a Regex is supported", path,
                     Show(pattern));
  }
  if (const auto rule = RecogniseSplitRegex(regex.get_ref<const std::string&>())) return *rule;
  return MakeError(ErrorCode::kUnsupported,
                   "tokenizer.json: {}pattern.Regex is {}; only the three expressions of the "
                   "DeepSeek releases are supported",
                   path, Show(regex));
}

Status ReadPreTokenizer(const Json& pre_tokenizer, std::vector<SplitRule>& stages) {
  DI_RETURN_IF_ERROR(RequireObject(pre_tokenizer, "pre_tokenizer"));
  const Json single = Json::array({pre_tokenizer});
  const bool is_sequence = At(pre_tokenizer, "type") == "Sequence";
  const Json& list = is_sequence ? At(pre_tokenizer, "pretokenizers") : single;
  if (!list.is_array() || list.empty()) {
    return MakeError(ErrorCode::kDataLoss,
                     "tokenizer.json: pre_tokenizer.pretokenizers is {}; it must be an array with "
                     "ByteLevel as its last element",
                     Show(list));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path =
        is_sequence ? fmt::format("pre_tokenizer.pretokenizers[{}].", i) : "pre_tokenizer.";
    DI_RETURN_IF_ERROR(RequireObject(list[i], path.substr(0, path.size() - 1)));
    if (i + 1 < list.size()) {
      DI_RETURN_IF_ERROR(RequireOneOf(list[i], path, "type", {"Split"}));
      DI_ASSIGN_OR_RETURN(const SplitRule rule, ReadSplit(list[i], path));
      stages.push_back(rule);
    } else {
      DI_RETURN_IF_ERROR(RequireOneOf(list[i], path, "type", {"ByteLevel"}));
      DI_RETURN_IF_ERROR(RequireOneOf(list[i], path, "add_prefix_space", {false}));
      DI_RETURN_IF_ERROR(RequireOneOf(list[i], path, "use_regex", {false}));
    }
  }
  return {};
}

Result<bool> ReadBool(const Json& object, const std::string& path, const char* key) {
  const Json& value = At(object, key);
  if (value.is_boolean()) return value.get<bool>();
  return MakeError(ErrorCode::kDataLoss, "tokenizer.json: {}{} is {}; it must be true or false",
                   path, key, Show(value));
}

Result<TokenizerFile::AddedToken> ReadAddedToken(const Json& token, const std::string& path) {
  DI_RETURN_IF_ERROR(RequireObject(token, path.substr(0, path.size() - 1)));
  const Json& content = At(token, "content");
  if (!content.is_string() || content.get_ref<const std::string&>().empty()) {
    return MakeError(ErrorCode::kDataLoss,
                     "tokenizer.json: {}content is {}; it must be a string that is not empty", path,
                     Show(content));
  }
  const Json& id = At(token, "id");
  if (!id.is_number_integer() || id < 0 || id >= kMaxTokenIds) {
    return MakeError(ErrorCode::kDataLoss,
                     "tokenizer.json: {}id is {}; it must be an integer in [0, {})", path, Show(id),
                     kMaxTokenIds);
  }
  DI_RETURN_IF_ERROR(RequireOneOf(token, path, "single_word", {false}));
  DI_RETURN_IF_ERROR(RequireOneOf(token, path, "lstrip", {false}));
  DI_RETURN_IF_ERROR(RequireOneOf(token, path, "rstrip", {false}));
  DI_ASSIGN_OR_RETURN(const bool is_normalized, ReadBool(token, path, "normalized"));
  DI_ASSIGN_OR_RETURN(const bool is_special, ReadBool(token, path, "special"));
  return TokenizerFile::AddedToken{content.get<std::string>(), id.get<int32_t>(), is_special,
                                   is_normalized};
}

}  // namespace

std::string QuotedExcerpt(std::string_view text) {
  constexpr size_t kMaxShown = 80;
  if (text.size() <= kMaxShown) return fmt::format("\"{}\"", RepairUtf8(text));
  return fmt::format("\"{}...\"", RepairUtf8(text.substr(0, kMaxShown)));
}

Result<TokenizerFile> ReadTokenizerFile(std::string_view json) {
  TokenizerFile file;
  DI_ASSIGN_OR_RETURN(const Json root, ParseTokenizerJson(json, file));
  DI_RETURN_IF_ERROR(RequireObject(root, "the file"));
  DI_RETURN_IF_ERROR(CheckModel(At(root, "model")));
  DI_RETURN_IF_ERROR(RequireOneOf(root, "", "truncation", {nullptr}));
  DI_RETURN_IF_ERROR(RequireOneOf(root, "", "padding", {nullptr}));
  const Json empty_sequence = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  DI_RETURN_IF_ERROR(RequireOneOf(root, "", "normalizer", {nullptr, empty_sequence}));
  DI_RETURN_IF_ERROR(ReadPreTokenizer(At(root, "pre_tokenizer"), file.stages));
  const Json& decoder = At(root, "decoder");
  DI_RETURN_IF_ERROR(RequireObject(decoder, "decoder"));
  DI_RETURN_IF_ERROR(RequireOneOf(decoder, "decoder.", "type", {"ByteLevel"}));
  const Json& added = At(root, "added_tokens");
  if (!added.is_array() && !added.is_null()) {
    return MakeError(ErrorCode::kDataLoss,
                     "tokenizer.json: added_tokens is {}; it must be an array", Show(added));
  }
  for (size_t i = 0; i < added.size(); ++i) {
    DI_ASSIGN_OR_RETURN(TokenizerFile::AddedToken token,
                        ReadAddedToken(added[i], fmt::format("added_tokens[{}].", i)));
    file.added_tokens.push_back(std::move(token));
  }
  return file;
}

}  // namespace deepinfer
