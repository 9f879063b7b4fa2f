// deepinfer generate: one prompt to streamed text, or JSON lines in and out.
#include <unistd.h>

#include "base/file.h"
#include "cli/batch_writer.h"
#include "cli/command.h"
#include "cli/line_reader.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/stream_printer.h"
#include "engine/completion.h"
#include "engine/text.h"

namespace deepinfer::cli {
namespace {

// The lines of a file, or of standard input as they arrive.
Result<LineReader> OpenLines(const std::string& name) {
  if (name == "-") return LineReader(STDIN_FILENO);
  DI_ASSIGN_OR_RETURN(std::string text, ReadFile(name));
  return LineReader(std::move(text));
}

class GenerateCommand final : public Command {
 public:
  std::string name() const override { return "generate"; }
  std::string summary() const override { return "Generates text from a prompt."; }
  std::string examples() const override {
    return "  deepinfer generate \"What is 17 + 25?\"\n"
           "  deepinfer generate --thinking --effort low \"What is 17 + 25?\"\n"
           "  deepinfer generate --raw --temperature 0.8 --seed 7 \"It was a dark night\"\n"
           "  cat question.txt | deepinfer generate -\n"
           "  deepinfer generate --regex \"[0-9]{1,4}\" \"What is 17 + 25?\"\n"
           "  deepinfer generate --jsonl requests.jsonl > answers.jsonl\n";
  }

  void Declare(FlagSet& flags) override {
    flags.Positional("PROMPT", prompt_, "The prompt; - reads standard input.");
    flags.Text("prompt-file", prompt_file_, "FILE", "Takes the prompt from a file.");
    flags.Text("jsonl", jsonl_, "FILE",
               "Reads one request a line (- is standard input) and writes one response a line: "
               "{\"prompt\" or \"messages\", \"id\", \"tools\", \"response_format\", \"mode\", "
               "\"max_tokens\", sampling ...}.");
    chat_.Declare(flags);
    flags.Switch("raw", raw_, "Continues the prompt as plain text, without chat encoding.");
    flags.Text("regex", regex_, "EXPRESSION", "The answer matches this regular expression.");
    flags.Text("grammar", grammar_file_, "FILE", "The answer follows this grammar (EBNF as GBNF).");
    flags.Text("json-schema", schema_file_, "FILE", "The answer is JSON of this schema.");
    flags.Switch("stats", stats_, "Prints speed and memory on standard error.");
    flags.FromTable({"model", "max-tokens", "temperature", "top-p", "top-k", "min-p", "seed",
                     "threads", "cpu-pinning", "cpu-target", "prefill-mode", "prefill-keep-tokens",
                     "check-weights", "weights"});
    DeclareEngineFlags(flags);
  }

  Status Validate(const ResolvedOptions&) override {
    const int sources =
        int{prompt_.has_value()} + int{prompt_file_.has_value()} + int{jsonl_.has_value()};
    if (sources != 1) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{}: give PROMPT (- for standard input), --prompt-file FILE or --jsonl FILE",
                       sources == 0 ? "no prompt" : "more than one source of prompts");
    }
    if (raw_ && chat_.any()) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "--raw goes without chat encoding: --system, --thinking, --effort and "
                       "--tools have no place in it");
    }
    if (int{regex_.has_value()} + int{grammar_file_.has_value()} + int{schema_file_.has_value()} >
        1) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "an answer has one form: give --regex, --grammar or --json-schema");
    }
    return chat_.Validate();
  }

  Result<int> Run(const ResolvedOptions& options) override {
    DI_ASSIGN_OR_RETURN(RequestDefaults defaults, chat_.Defaults(options.values));
    defaults.raw = raw_;
    DI_ASSIGN_OR_RETURN(defaults.sampling.so_args, Form());
    if (jsonl_) return RunLines(options, defaults);
    DI_ASSIGN_OR_RETURN(const std::string text, ReadPrompt());
    DI_ASSIGN_OR_RETURN(const Request request, RequestFromText(text, defaults));
    DI_ASSIGN_OR_RETURN(const auto session, Session::Open(options));
    return RunOne(*session, request);
  }

 private:
  Result<std::optional<StructuredOutput>> Form() const {
    if (regex_) return StructuredOutput{"regex", *regex_};
    for (const auto& [type, file] :
         {std::pair("ebnf", &grammar_file_), std::pair("json_schema", &schema_file_)}) {
      if (!*file) continue;
      DI_ASSIGN_OR_RETURN(std::string text, ReadFile(**file));
      return StructuredOutput{type, std::move(text)};
    }
    return std::nullopt;
  }

  Result<std::string> ReadPrompt() const {
    if (prompt_file_) return ReadFile(*prompt_file_);
    if (*prompt_ == "-") return ReadStandardInput();
    return *prompt_;
  }

  Result<int> RunOne(Session& session, const Request& request) {
    StreamPrinter printer(StandardOutput());
    const CompletionHooks hooks{.on_event = [&](const auto& event) { return printer.Print(event); },
                                .prefill_progress = TerminalProgress()};
    DI_ASSIGN_OR_RETURN(const Completion completion, Answer(session, request, hooks));
    DI_RETURN_IF_ERROR(printer.Finish());
    const FinishReason reason = completion.reason;
    if (reason == FinishReason::kLength) {
      PrintNote(fmt::format("note: the answer was cut off after --max-tokens {}",
                            request.sampling.max_tokens));
    } else if (reason == FinishReason::kContext) {
      PrintNote("note: the answer was cut off because the context is full");
    }
    if (stats_) session.PrintStats();
    if (completion.output.error) {
      return MakeError(ErrorCode::kDataLoss, "the model's tool call cannot be used: {}",
                       completion.output.error->message);
    }
    return kExitOk;
  }

  Result<int> RunLines(const ResolvedOptions& options, const RequestDefaults& defaults) {
    DI_ASSIGN_OR_RETURN(LineReader reader, OpenLines(*jsonl_));
    DI_ASSIGN_OR_RETURN(const auto session, Session::Open(options));
    BatchWriter writer(*session, StandardOutput());
    std::string line;
    for (int64_t number = 1; writer.Ready(); ++number) {
      DI_ASSIGN_OR_RETURN(const LineReader::Outcome outcome, reader.Next(line));
      if (outcome == LineReader::Outcome::kEnd) break;
      if (outcome == LineReader::Outcome::kTooLong) {
        writer.Add({}, number, Forward(LineTooLong()));
        continue;
      }
      // Editors put a byte-order mark before the first line; it is no part of the JSON.
      if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      writer.Add(RequestId(line), number, Submit(*session, line, defaults));
    }
    DI_RETURN_IF_ERROR(writer.Finish());
    if (stats_) session->PrintStats();
    if (writer.failed() > 0) {
      PrintNote(fmt::format("{} of {} requests failed", writer.failed(), writer.requests()));
    }
    return writer.failed() > 0 ? kExitFailure : kExitOk;
  }

  static Result<PendingResponse> Submit(Session& session, const std::string& line,
                                        const RequestDefaults& defaults) {
    DI_ASSIGN_OR_RETURN(Request request, ParseRequest(line, defaults));
    const Runtime& runtime = session.runtime();
    DI_ASSIGN_OR_RETURN(Prompt prompt,
                        RequestPrompt(request, runtime.tokenizer(), runtime.config()));
    DI_ASSIGN_OR_RETURN(
        PendingCompletion completion,
        PendingCompletion::Submit(session.engine(), std::move(prompt), request.sampling));
    return PendingResponse{std::move(request), std::move(completion)};
  }

  static Result<Completion> Answer(Session& session, const Request& request,
                                   const CompletionHooks& hooks) {
    const Runtime& runtime = session.runtime();
    DI_ASSIGN_OR_RETURN(Prompt prompt,
                        RequestPrompt(request, runtime.tokenizer(), runtime.config()));
    DI_ASSIGN_OR_RETURN(Completion completion,
                        Complete(session.engine(), std::move(prompt), request.sampling, hooks));
    session.Count(completion);
    return completion;
  }

  std::optional<std::string> prompt_;
  std::optional<std::string> prompt_file_;
  std::optional<std::string> jsonl_;
  std::optional<std::string> regex_;
  std::optional<std::string> grammar_file_;
  std::optional<std::string> schema_file_;
  ChatFlags chat_;
  bool raw_ = false;
  bool stats_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGenerateCommand() { return std::make_unique<GenerateCommand>(); }

}  // namespace deepinfer::cli
