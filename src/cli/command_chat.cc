// deepinfer chat: an interactive conversation.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/stream_printer.h"
#include "engine/completion.h"
#include "engine/text.h"

namespace deepinfer::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHelp =
    "/help                this list\n"
    "/reset               starts a new conversation\n"
    "/system [TEXT]       sets the system message (without TEXT: none) and starts anew\n"
    "/thinking on|off     lets the model reason before it answers\n"
    "/effort N            reasoning effort: 1 to 100, low, high, xhigh, max\n"
    "/save FILE           writes the conversation as JSON, as `deepinfer encode` reads it\n"
    "/quit                ends (so does Ctrl-D); Ctrl-C stops the current answer\n";

struct Turn {
  std::string user;
  std::string reasoning;
  std::string answer;
};

class Conversation {
 public:
  explicit Conversation(RequestDefaults defaults) : defaults_(std::move(defaults)) {}

  RequestDefaults& defaults() { return defaults_; }
  void Reset() { turns_.clear(); }
  void Add(Turn turn) { turns_.push_back(std::move(turn)); }

  // The conversation so far and one more message of the user.
  ChatRequest Ask(const std::string& text) const {
    ChatRequest request;
    request.options = defaults_.chat;
    for (const Turn& turn : turns_) {
      request.messages.push_back(ChatMessage::Text(Role::kUser, turn.user));
      ChatMessage answer = ChatMessage::Text(Role::kAssistant, turn.answer);
      answer.reasoning = turn.reasoning;
      request.messages.push_back(std::move(answer));
    }
    request.messages.push_back(ChatMessage::Text(Role::kUser, text));
    ApplyChatDefaults(defaults_, request);
    return request;
  }

  std::string ToJson() const {
    Json messages = Json::array();
    if (!defaults_.system.empty()) {
      messages.push_back({{"role", "system"}, {"content", defaults_.system}});
    }
    for (const Turn& turn : turns_) {
      messages.push_back({{"role", "user"}, {"content", turn.user}});
      Json answer = {{"role", "assistant"}, {"content", turn.answer}};
      if (!turn.reasoning.empty()) answer["reasoning_content"] = turn.reasoning;
      messages.push_back(std::move(answer));
    }
    const bool thinking = defaults_.chat.thinking_mode == ThinkingMode::kThinking;
    const Json json = {{"messages", std::move(messages)},
                       {"mode", thinking ? "thinking" : "chat"},
                       {"reasoning_effort", defaults_.chat.reasoning_effort}};
    return json.dump(2) + "\n";
  }

 private:
  RequestDefaults defaults_;
  std::vector<Turn> turns_;
};

class ChatCommand final : public Command {
 public:
  std::string name() const override { return "chat"; }
  std::string summary() const override { return "Talks with the model, turn by turn."; }
  std::string examples() const override {
    return "  deepinfer chat\n"
           "  deepinfer chat --thinking --system \"Answer briefly.\"\n"
           "  printf 'Hello\\nWho are you?\\n' | deepinfer chat\n";
  }
  void Declare(FlagSet& flags) override {
    flags.Text("system", chat_.system, "TEXT", "System message.");
    flags.Switch("thinking", chat_.thinking, "Let the model reason before it answers.");
    flags.Text("effort", chat_.effort, "N",
               "Reasoning effort in thinking mode: 1 to 100, low, high, xhigh or max (default "
               "high).");
    flags.FromTable({"model", "max-tokens", "temperature", "top-p", "top-k", "min-p", "seed",
                     "threads", "cpu-pinning", "cpu-target", "prefill-mode", "prefill-keep-tokens",
                     "check-weights", "weights"});
    DeclareEngineFlags(flags);
  }
  Status Validate(const ResolvedOptions&) override { return chat_.Validate(); }

  Result<int> Run(const ResolvedOptions& options) override {
    DI_ASSIGN_OR_RETURN(RequestDefaults defaults, chat_.Defaults(options.values));
    DI_ASSIGN_OR_RETURN(const auto session, Session::Open(options));
    Conversation conversation(std::move(defaults));
    LineEditor editor;
    if (editor.interactive()) {
      CatchInterrupt();
      PrintNote("/help lists the commands; Ctrl-C stops an answer, Ctrl-D ends.");
    }
    std::string line;
    for (;;) {
      DI_ASSIGN_OR_RETURN(const LineEditor::Outcome outcome, editor.Read("> ", line));
      if (outcome == LineEditor::Outcome::kEnd) {
        if (editor.interactive()) PrintNote("");
        break;
      }
      if (outcome == LineEditor::Outcome::kInterrupted) {
        PrintNote("");
        continue;
      }
      const bool too_long = outcome == LineEditor::Outcome::kTooLong;
      if (!too_long && line.find_first_not_of(" \t\r") == std::string::npos) continue;
      if (line == "/quit") break;
      const Status status = too_long                ? Status(Forward(LineTooLong()))
                            : line.starts_with('/') ? RunSlash(line, conversation)
                                                    : Answer(*session, line, conversation);
      if (status) continue;
      if (!StandardOutput().Flush()) return Forward(status.error());
      PrintNote("error: " + status.error().message);
      if (!editor.interactive()) failed_ = true;
    }
    return failed_ ? kExitFailure : kExitOk;
  }

 private:
  Status Answer(Session& session, const std::string& text, Conversation& conversation) {
    DI_RETURN_IF_ERROR(RequireUtf8(text, "the message"));
    const Runtime& runtime = session.runtime();
    DI_ASSIGN_OR_RETURN(Prompt prompt, ChatPrompt(conversation.Ask(text), runtime.tokenizer()));
    StreamPrinter printer(StandardOutput());
    Interrupt().store(false);
    const CompletionHooks hooks{.on_event = [&](const auto& event) { return printer.Print(event); },
                                .prefill_progress = TerminalProgress(),
                                .cancel = &Interrupt()};
    const RequestDefaults& defaults = conversation.defaults();
    DI_ASSIGN_OR_RETURN(Completion completion,
                        Complete(session.engine(), std::move(prompt), defaults.sampling, hooks));
    DI_RETURN_IF_ERROR(printer.Finish());
    const FinishReason reason = completion.reason;
    const ParsedOutput& output = completion.output;
    if (reason == FinishReason::kCancelled && output.reasoning.empty() && output.content.empty()) {
      PrintNote("[stopped before an answer; the message is dropped]");
      return {};
    }
    conversation.Add({text, output.reasoning, output.content});
    switch (reason) {
      case FinishReason::kLength:
        PrintNote(fmt::format("[cut off after --max-tokens {}]", defaults.sampling.max_tokens));
        break;
      case FinishReason::kContext:
        PrintNote("[cut off: the context is full; /reset starts anew]");
        break;
      case FinishReason::kCancelled:
        PrintNote("[stopped]");
        break;
      case FinishReason::kStop:
      case FinishReason::kDeadline:  // chat sets none
      case FinishReason::kError:     // Complete gave an error
        break;
    }
    return {};
  }

  static Status RunSlash(const std::string& line, Conversation& conversation) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string command = line.substr(0, space);
    const size_t begin = std::min(line.find_first_not_of(' ', space), line.size());
    std::string argument = line.substr(begin);
    argument.erase(argument.find_last_not_of(" \r") + 1);
    ChatOptions& chat = conversation.defaults().chat;
    if (command == "/help") {
      DI_RETURN_IF_ERROR(StandardOutput().Write(kHelp));
      return StandardOutput().Flush();
    }
    if (command == "/reset") {
      conversation.Reset();
      return {};
    }
    if (command == "/system") {
      DI_RETURN_IF_ERROR(RequireUtf8(argument, "the system message"));
      conversation.defaults().system = argument;
      conversation.Reset();
      return {};
    }
    if (command == "/thinking") {
      if (argument != "on" && argument != "off") {
        return MakeError(ErrorCode::kInvalidArgument, "/thinking \"{}\" is neither on nor off",
                         argument);
      }
      chat.thinking_mode = argument == "on" ? ThinkingMode::kThinking : ThinkingMode::kChat;
      return {};
    }
    if (command == "/effort") {
      const std::optional<int> effort = ParseEffort(argument);
      if (!effort) {
        return MakeError(ErrorCode::kInvalidArgument,
                         "/effort \"{}\" is none of the integers 1 to 100, low, high, xhigh, max",
                         argument);
      }
      chat.reasoning_effort = *effort;
      return {};
    }
    if (command == "/save") {
      if (argument.empty())
        return MakeError(ErrorCode::kInvalidArgument, "/save needs a file name");
      return WriteUserFile(argument, conversation.ToJson());
    }
    return MakeError(ErrorCode::kInvalidArgument, "no command {}; /help lists them", command);
  }

  ChatFlags chat_;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeChatCommand() { return std::make_unique<ChatCommand>(); }

}  // namespace deepinfer::cli
