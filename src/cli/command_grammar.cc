// deepinfer grammar check: what a grammar compiles to, and which texts are in it.
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema/json_schema.h"
#include "grammar/lark.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"

namespace deepinfer::cli {
namespace {

using Json = nlohmann::ordered_json;
using CompiledPtr = std::shared_ptr<const grammar::CompiledGrammar>;

struct Draft {
  std::string_view name;
  grammar::SchemaDraft draft;
};
constexpr Draft kDrafts[] = {
    {"any", grammar::SchemaDraft::kAny},      {"4", grammar::SchemaDraft::k4},
    {"6", grammar::SchemaDraft::k6},          {"7", grammar::SchemaDraft::k7},
    {"2019-09", grammar::SchemaDraft::k2019}, {"2020-12", grammar::SchemaDraft::k2020}};

// One text to judge, by the name of its file or its line.
struct Instance {
  std::string name;
  std::string text;
};

enum class Verdict { kValid, kWrongFormat, kInvalid };

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kValid:
      return "valid";
    case Verdict::kWrongFormat:
      return "valid, but not its format";
    case Verdict::kInvalid:
      return "invalid";
  }
  return "";
}

// That of the checkpoint which the command line names, else one of all bytes and an end token.
Result<std::shared_ptr<const grammar::Vocabulary>> MakeVocabulary(const ResolvedOptions& options) {
  const auto source = options.sources.find("model");
  const bool named =
      source != options.sources.end() && source->second == OptionSource::kCommandLine;
  std::vector<std::string> tokens;
  if (!named) {
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  } else {
    DI_ASSIGN_OR_RETURN(const Tokenizer tokenizer, LoadTokenizer(options));
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      tokens.emplace_back(tokenizer.IsAdded(id) ? std::string_view() : tokenizer.TokenBytes(id));
    }
  }
  const int32_t end = static_cast<int32_t>(tokens.size());
  tokens.emplace_back();
  return grammar::Vocabulary::Create(std::move(tokens), {end});
}

class GrammarCommand final : public Command {
 public:
  std::string name() const override { return "grammar"; }
  std::string summary() const override {
    return "Compiles a JSON Schema or another grammar and judges texts by it.";
  }
  std::string examples() const override {
    return "  deepinfer grammar check person.schema.json\n"
           "  deepinfer grammar check person.schema.json ada.json bob.json\n"
           "  printf '%s\\n' '{\"a\": 1}' '[]' | deepinfer grammar check --json object.json -\n"
           "  deepinfer grammar check --kind regex date.txt today.txt\n"
           "  deepinfer grammar check --model models/nano person.schema.json\n";
  }
  void Declare(FlagSet& flags) override {
    flags.RequiredPositional("WHAT", what_, "check.");
    flags.RequiredPositional("SCHEMA", schema_, "File of the grammar.");
    flags.PositionalList("INSTANCE", instances_,
                         "Files to judge; - reads instances from standard input, one a line.");
    flags.Text("kind", kind_, "KIND", "json-schema (default), regex, gbnf or lark.");
    flags.Text("draft", draft_, "DRAFT",
               "Draft of schemas without \"$schema\": any (default), 4, 6, 7, 2019-09, 2020-12.");
    flags.Text("formats", formats_, "HOW",
               "note (default): a value that fails only its \"format\" is valid, as the standard "
               "has it, and marked; assert: it is invalid; ignore: no format means anything.");
    flags.Switch("json", json_, "Prints one JSON object.");
    flags.FromTable({"model"});
  }
  Status Validate(const ResolvedOptions&) override {
    if (what_ != "check") {
      return MakeError(ErrorCode::kInvalidArgument, "grammar {}: must be check", what_);
    }
    if (kind_ != "json-schema" && kind_ != "regex" && kind_ != "gbnf" && kind_ != "lark") {
      return MakeError(ErrorCode::kInvalidArgument,
                       "--kind {}: must be json-schema, regex, gbnf or lark", *kind_);
    }
    if (formats_ != "note" && formats_ != "assert" && formats_ != "ignore") {
      return MakeError(ErrorCode::kInvalidArgument, "--formats {}: must be note, assert or ignore",
                       *formats_);
    }
    for (const Draft& draft : kDrafts) {
      if (draft_ != draft.name) continue;
      schema_options_.draft = draft.draft;
      return {};
    }
    return MakeError(ErrorCode::kInvalidArgument,
                     "--draft {}: must be any, 4, 6, 7, 2019-09 or 2020-12", *draft_);
  }

  Result<int> Run(const ResolvedOptions& options) override {
    DI_ASSIGN_OR_RETURN(const std::string text, ReadFile(schema_));
    DI_ASSIGN_OR_RETURN(const std::vector<Instance> instances, ReadInstances());
    DI_ASSIGN_OR_RETURN(vocabulary_, MakeVocabulary(options));
    const auto start = std::chrono::steady_clock::now();
    const Status compiled = Compile(text);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (!compiled) {
      DI_RETURN_IF_ERROR(PrintRefusal(compiled.error()));
      return kExitFailure;
    }
    DI_RETURN_IF_ERROR(PrintAcceptance(took.count()));
    bool all_valid = true;
    for (const Instance& instance : instances) {
      std::string problem;
      DI_ASSIGN_OR_RETURN(const Verdict verdict, Judge(instance, problem));
      all_valid &= verdict != Verdict::kInvalid;
      DI_RETURN_IF_ERROR(PrintVerdict(instance, verdict, problem));
    }
    if (json_) DI_RETURN_IF_ERROR(StandardOutput().Write(report_.dump() + "\n"));
    return all_valid ? kExitOk : kExitFailure;
  }

 private:
  bool is_schema() const { return kind_ == "json-schema"; }

  Result<std::vector<Instance>> ReadInstances() const {
    std::vector<Instance> result;
    for (const std::string& name : instances_) {
      if (name != "-") {
        DI_ASSIGN_OR_RETURN(std::string text, ReadFile(name));
        result.push_back({name, std::move(text)});
        continue;
      }
      DI_ASSIGN_OR_RETURN(const std::string lines, ReadStandardInput());
      size_t number = 1;
      for (size_t begin = 0; begin < lines.size(); ++number) {
        const size_t end = std::min(lines.find('\n', begin), lines.size());
        result.push_back({fmt::format("line {}", number), lines.substr(begin, end - begin)});
        begin = end + 1;
      }
    }
    return result;
  }

  Result<grammar::GrammarIr> OtherIr(const std::string& text, grammar::Budget& budget) const {
    if (kind_ == "gbnf") return grammar::GbnfToIr(text, budget);
    if (kind_ == "lark") return grammar::LarkToIr(text, budget);
    // An editor's line end at the end of the file is no part of the expression.
    std::string_view pattern = text;
    if (pattern.ends_with('\n')) pattern.remove_suffix(1);
    return grammar::RegexToIr(pattern, {}, budget);
  }

  // Sets grammar_, and without_formats_ where that is what judges. Both stay null where no
  // value is an instance.
  Status Compile(const std::string& text) {
    if (!is_schema()) {
      grammar::Budget budget{grammar::Limits()};
      DI_ASSIGN_OR_RETURN(grammar::GrammarIr ir, OtherIr(text, budget));
      DI_ASSIGN_OR_RETURN(grammar_,
                          grammar::CompiledGrammar::Create(std::move(ir), vocabulary_, budget));
      return {};
    }
    bool has_formats = false;
    if (formats_ != "ignore") {
      const Status asserted =
          CompileSchema(text, grammar::JsonSchemaOptions::Formats::kAssert, grammar_, has_formats);
      asserted_ = asserted.has_value();
      if (!asserted && formats_ == "assert") return asserted;
      if (asserted && !has_formats) return {};
      if (asserted && formats_ == "assert") return {};
    }
    judges_without_formats_ = true;
    return CompileSchema(text, grammar::JsonSchemaOptions::Formats::kAnnotate, without_formats_,
                         has_formats);
  }

  Status CompileSchema(const std::string& text, grammar::JsonSchemaOptions::Formats formats,
                       CompiledPtr& compiled, bool& has_formats) {
    schema_options_.formats = formats;
    grammar::Budget budget{grammar::Limits()};
    DI_ASSIGN_OR_RETURN(grammar::JsonSchemaGrammar read,
                        grammar::ReadJsonSchema(text, schema_options_, budget));
    has_formats = read.has_formats;
    if (read.allows_nothing) return {};
    DI_ASSIGN_OR_RETURN(compiled,
                        grammar::CompiledGrammar::Create(std::move(read.ir), vocabulary_, budget));
    return {};
  }

  Result<Verdict> Judge(const Instance& instance, std::string& problem) const {
    if (!is_schema()) {
      grammar::Matcher matcher(grammar_);
      const bool whole = matcher.AdvanceBytes(instance.text).has_value() && matcher.CanEnd();
      return whole ? Verdict::kValid : Verdict::kInvalid;
    }
    const auto value = grammar::ParseJsonNode(instance.text, instance.name, {});
    if (!value) {
      problem = value.error().message;
      return Verdict::kInvalid;
    }
    const auto allows = [&](const CompiledPtr& compiled) -> Result<bool> {
      if (compiled == nullptr) return false;
      return grammar::AllowsValue(compiled, *value);
    };
    // Under `not` and `oneOf` a format asserted may allow what a format noted does not: the verdict
    // is that of the schema without formats.
    if (judges_without_formats_) {
      DI_ASSIGN_OR_RETURN(const bool valid, allows(without_formats_));
      if (!valid) return Verdict::kInvalid;
      if (!asserted_) return Verdict::kValid;
    }
    DI_ASSIGN_OR_RETURN(const bool with_formats, allows(grammar_));
    if (with_formats) return Verdict::kValid;
    return judges_without_formats_ ? Verdict::kWrongFormat : Verdict::kInvalid;
  }

  Status PrintRefusal(const Error& error) {
    if (!json_) return StandardOutput().Write("refused: " + error.message + "\n");
    report_ = {{"grammar", "refused"}, {"error", error.message}};
    return StandardOutput().Write(report_.dump() + "\n");
  }

  Status PrintAcceptance(double milliseconds) {
    const CompiledPtr& compiled = grammar_ != nullptr ? grammar_ : without_formats_;
    const grammar::GrammarStats stats =
        compiled != nullptr ? compiled->stats() : grammar::GrammarStats{};
    if (json_) {
      report_ = {{"grammar", "accepted"},         {"satisfiable", compiled != nullptr},
                 {"milliseconds", milliseconds},  {"rules", stats.rules},
                 {"states", stats.states},        {"bytes", stats.program_bytes},
                 {"tokens", vocabulary_->size()}, {"instances", Json::array()}};
      return {};
    }
    if (compiled == nullptr) {
      return StandardOutput().Write("accepted: no value is an instance\n");
    }
    return StandardOutput().Write(fmt::format(
        "accepted: {} rules, {} states, {} KiB, compiled in {:.2f} ms for {} tokens\n", stats.rules,
        stats.states, (stats.program_bytes + 1023) / 1024, milliseconds, vocabulary_->size()));
  }

  Status PrintVerdict(const Instance& instance, Verdict verdict, const std::string& problem) {
    if (!json_) {
      return StandardOutput().Write(fmt::format("{}: {}{}{}\n", instance.name, VerdictName(verdict),
                                                problem.empty() ? "" : ": ", problem));
    }
    Json entry = {{"name", instance.name}, {"valid", verdict != Verdict::kInvalid}};
    if (verdict == Verdict::kWrongFormat) entry["format"] = false;
    if (!problem.empty()) entry["error"] = problem;
    report_["instances"].push_back(std::move(entry));
    return {};
  }

  std::string what_;
  std::string schema_;
  std::vector<std::string> instances_;
  std::optional<std::string> kind_ = "json-schema";
  std::optional<std::string> draft_ = "any";
  std::optional<std::string> formats_ = "note";
  bool json_ = false;

  grammar::JsonSchemaOptions schema_options_;
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  CompiledPtr grammar_;
  CompiledPtr without_formats_;
  bool asserted_ = false;
  bool judges_without_formats_ = false;
  Json report_;
};

}  // namespace

std::unique_ptr<Command> MakeGrammarCommand() { return std::make_unique<GrammarCommand>(); }

}  // namespace deepinfer::cli
