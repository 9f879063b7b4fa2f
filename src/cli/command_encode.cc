// deepinfer encode: a chat request to the prompt the model reads.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "chat/encode.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "engine/prompt.h"
#include "engine/text.h"

namespace deepinfer::cli {
namespace {

using Json = nlohmann::ordered_json;

Json StartStateJson(StartState state) {
  switch (state) {
    case StartState::kNone:
      return nullptr;
    case StartState::kReasoning:
      return "reasoning";
    case StartState::kAnswer:
      return "answer";
    case StartState::kAnswerContinued:
      return "answer-continued";
  }
  return nullptr;
}

Json SegmentsJson(const EncodedPrompt& prompt) {
  Json list = Json::array();
  for (const Segment& segment : prompt.segments) {
    const bool control = segment.kind == Segment::Kind::kControl;
    list.push_back(Json::array({control ? "control" : "text", segment.text}));
  }
  return list;
}

class EncodeCommand final : public Command {
 public:
  std::string name() const override { return "encode"; }
  std::string summary() const override { return "Renders chat messages as the model's prompt."; }
  std::string examples() const override {
    return "  deepinfer encode messages.json\n"
           "  deepinfer encode --thinking --effort 30 --ids messages.json\n"
           "  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | deepinfer "
           "encode "
           "--json -\n";
  }
  void Declare(FlagSet& flags) override {
    flags.RequiredPositional("FILE", file_,
                             "JSON object with messages, or a list of messages; - reads standard "
                             "input.");
    flags.Switch("ids", ids_, "Prints token ids instead of text.");
    flags.Switch("json", json_, "Prints text, ids, pieces and start state as one JSON object.");
    chat_.Declare(flags);
    flags.FromTable({"model"});
  }
  Status Validate(const ResolvedOptions&) override { return chat_.Validate(); }

  Result<int> Run(const ResolvedOptions& options) override {
    DI_ASSIGN_OR_RETURN(const RequestDefaults defaults, chat_.Defaults(options.values));
    DI_ASSIGN_OR_RETURN(const ChatRequest request, ReadRequest(defaults));
    DI_ASSIGN_OR_RETURN(const EncodedPrompt encoded, EncodePrompt(request));
    Output& output = StandardOutput();
    if (!ids_ && !json_) {
      DI_RETURN_IF_ERROR(output.Write(encoded.Text() + "\n"));
      return kExitOk;
    }
    DI_ASSIGN_OR_RETURN(const Tokenizer tokenizer, LoadTokenizer(options));
    DI_ASSIGN_OR_RETURN(const Prompt prompt, TokenizePrompt(encoded, tokenizer));
    if (json_) {
      const Json json = {{"prompt", encoded.Text()},
                         {"start_state", StartStateJson(encoded.start_state)},
                         {"segments", SegmentsJson(encoded)},
                         {"ids", prompt.tokens}};
      DI_RETURN_IF_ERROR(output.Write(json.dump() + "\n"));
      return kExitOk;
    }
    DI_RETURN_IF_ERROR(output.Write(Json(prompt.tokens).dump() + "\n"));
    return kExitOk;
  }

 private:
  Result<ChatRequest> ReadRequest(const RequestDefaults& defaults) const {
    std::string text;
    if (file_ == "-") {
      DI_ASSIGN_OR_RETURN(text, ReadStandardInput());
    } else {
      DI_ASSIGN_OR_RETURN(text, ReadFile(file_));
    }
    DI_RETURN_IF_ERROR(RequireUtf8(text, file_));
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first != std::string::npos && text[first] == '[') text = "{\"messages\": " + text + "}";
    DI_ASSIGN_OR_RETURN(ChatRequest request, ParseChatRequest(text, defaults.chat));
    ApplyChatDefaults(defaults, request);
    return request;
  }

  std::string file_;
  ChatFlags chat_;
  bool ids_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeEncodeCommand() { return std::make_unique<EncodeCommand>(); }

}  // namespace deepinfer::cli
