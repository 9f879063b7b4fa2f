// deepinfer tokenize: text to ids and back.
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"

namespace deepinfer::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string AsJsonText(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

constexpr std::string_view kSeparators = ", \t\n[]";

// Ids separated by commas or blanks.
Result<std::vector<int32_t>> ParseIds(std::string_view text, int32_t vocab_size) {
  std::vector<int32_t> ids;
  for (size_t begin = text.find_first_not_of(kSeparators); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    int32_t id = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size() || id < 0 || id >= vocab_size) {
      return MakeError(ErrorCode::kInvalidArgument, "token id {} is not an integer from 0 to {}",
                       word, vocab_size - 1);
    }
    ids.push_back(id);
    begin = text.find_first_not_of(kSeparators, end);
  }
  return ids;
}

class TokenizeCommand final : public Command {
 public:
  std::string name() const override { return "tokenize"; }
  std::string summary() const override {
    return "Shows the token ids of a text, or the text of ids.";
  }
  std::string examples() const override {
    return "  deepinfer tokenize \"Hello world\"\n"
           "  deepinfer tokenize --special --json \"<think>\"\n"
           "  deepinfer tokenize --file book.txt --json\n"
           "  deepinfer tokenize --decode 272,1503\n";
  }
  void Declare(FlagSet& flags) override {
    flags.Positional("TEXT", text_, "The text; - reads standard input.");
    flags.Text("file", file_, "FILE", "Takes the text from a file.");
    flags.Text("decode", decode_, "IDS", "Prints the text of these ids, separated by commas.");
    flags.Switch("special", special_, "Reads control tokens that the text spells as such.");
    flags.Switch("json", json_, "Prints one JSON object.");
    flags.FromTable({"model"});
  }
  Status Validate(const ResolvedOptions&) override {
    if (int{text_.has_value()} + int{file_.has_value()} + int{decode_.has_value()} != 1) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          "give exactly one of TEXT (- for standard input), --file FILE, --decode IDS");
    }
    if (decode_ && decode_->find_first_not_of(kSeparators) == std::string::npos) {
      return MakeError(ErrorCode::kInvalidArgument, "--decode \"{}\" holds no token id", *decode_);
    }
    return {};
  }

  Result<int> Run(const ResolvedOptions& options) override {
    DI_ASSIGN_OR_RETURN(const Tokenizer tokenizer, LoadTokenizer(options));
    if (decode_) {
      DI_ASSIGN_OR_RETURN(const auto ids, ParseIds(*decode_, tokenizer.vocab_size()));
      DI_RETURN_IF_ERROR(PrintDecoded(tokenizer, ids));
      return kExitOk;
    }
    std::string text = text_.value_or("");
    if (file_) {
      DI_ASSIGN_OR_RETURN(text, ReadFile(*file_));
    } else if (text == "-") {
      DI_ASSIGN_OR_RETURN(text, ReadStandardInput());
    }
    const auto ids =
        tokenizer.Encode(text, special_ ? SpecialTokens::kParse : SpecialTokens::kAsText);
    DI_RETURN_IF_ERROR(PrintIds(tokenizer, ids));
    return kExitOk;
  }

 private:
  Status PrintDecoded(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
    Output& output = StandardOutput();
    if (!json_) return output.Write(tokenizer.DecodeBytes(ids) + "\n");
    const Json json = {{"text", tokenizer.Decode(ids)}, {"ids", ids}};
    return output.Write(json.dump() + "\n");
  }

  Status PrintIds(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
    Output& output = StandardOutput();
    if (json_) return output.Write(Json{{"ids", ids}, {"count", ids.size()}}.dump() + "\n");
    for (int32_t id : ids) {
      DI_RETURN_IF_ERROR(
          output.Write(fmt::format("{:>7}  {}\n", id, AsJsonText(tokenizer.TokenBytes(id)))));
    }
    return output.Write(fmt::format("{} tokens\n", ids.size()));
  }

  std::optional<std::string> text_;
  std::optional<std::string> file_;
  std::optional<std::string> decode_;
  bool special_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTokenizeCommand() { return std::make_unique<TokenizeCommand>(); }

}  // namespace deepinfer::cli
