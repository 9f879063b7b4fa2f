#include "chat/encode.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "chat/chat_error.h"
#include "chat/chat_json.h"
#include "chat/literals.h"
#include "chat/tokens.h"
#include "chat/turns.h"

namespace deepinfer {
namespace {

std::string Replace(std::string_view literal, std::string_view placeholder, std::string_view by) {
  std::string out(literal);
  out.replace(out.find(placeholder), placeholder.size(), by);
  return out;
}

// Appends to a prompt; joins neighbouring texts.
class PromptWriter {
 public:
  explicit PromptWriter(EncodedPrompt& prompt) : prompt_(prompt) {}

  void Control(std::string_view token) {
    prompt_.segments.push_back({Segment::Kind::kControl, std::string(token)});
  }

  // Text of the request, whatever it spells.
  void Text(std::string_view text) {
    if (text.empty()) return;
    if (prompt_.segments.empty() || prompt_.segments.back().kind != Segment::Kind::kText) {
      prompt_.segments.emplace_back();
    }
    prompt_.segments.back().text += text;
  }

  // Text of the format, in which the text of a control token is that token.
  void Literal(std::string_view literal) {
    while (!literal.empty()) {
      size_t at = literal.size();
      std::string_view token;
      for (const std::string_view candidate : kControlTokens) {
        const size_t found = literal.find(candidate);
        if (found < at) {
          at = found;
          token = candidate;
        }
      }
      Text(literal.substr(0, at));
      if (token.empty()) return;
      Control(token);
      literal.remove_prefix(at + token.size());
    }
  }

  // A literal around text of the request.
  void Around(std::string_view literal, std::string_view placeholder, std::string_view text) {
    const size_t at = literal.find(placeholder);
    Literal(literal.substr(0, at));
    Text(text);
    Literal(literal.substr(at + placeholder.size()));
  }

  void Block(const ContentBlock& block) {
    switch (block.kind) {
      case ContentBlock::Kind::kText:
        Text(block.text);
        break;
      case ContentBlock::Kind::kImage:
        Control(kImageToken);
        prompt_.images.push_back(block.image);
        break;
      case ContentBlock::Kind::kToolResult:
        Text(Replace(kUnsupportedBlock, "{type}", "tool_result"));
        break;
      case ContentBlock::Kind::kUnsupported:
        Text(Replace(kUnsupportedBlock, "{type}", block.text));
        break;
    }
  }

  void Blocks(const std::vector<ContentBlock>& blocks, bool leave_out_unsupported = false) {
    bool first = true;
    for (const ContentBlock& block : blocks) {
      if (leave_out_unsupported && block.kind != ContentBlock::Kind::kText &&
          block.kind != ContentBlock::Kind::kImage) {
        continue;
      }
      if (!first) Text(kBlockSeparator);
      first = false;
      Block(block);
    }
  }

 private:
  EncodedPrompt& prompt_;
};

std::string_view TaskToken(Task task) {
  switch (task) {
    case Task::kAction:
      return kActionToken;
    case Task::kQuery:
      return kQueryToken;
    case Task::kAuthority:
      return kAuthorityToken;
    case Task::kDomain:
      return kDomainToken;
    case Task::kTitle:
      return kTitleToken;
    case Task::kReadUrl:
      return kReadUrlToken;
  }
  return kActionToken;
}

struct Parameter {
  std::string key;
  bool is_string = false;
  std::string value;
};

std::vector<Parameter> Parameters(const ToolCall& call) {
  auto value = ParseJson(call.arguments);
  if (value && value->is(JsonValue::Kind::kString) && !call.arguments_are_value) {
    value = ParseJson(std::string(value->text));
  }
  std::vector<Parameter> parameters;
  if (!value || !value->is(JsonValue::Kind::kObject)) {
    parameters.push_back(
        {std::string(kFallbackParameter), !call.arguments_are_value, call.arguments});
    return parameters;
  }
  for (auto& [key, member] : value->members) {
    const bool is_string = member.is(JsonValue::Kind::kString);
    parameters.push_back({key, is_string, is_string ? member.text : WriteJson(member)});
  }
  return parameters;
}

bool IsEmpty(const std::vector<ContentBlock>& content) {
  return content.empty() || (content.size() == 1 && content[0].kind == ContentBlock::Kind::kText &&
                             content[0].text.empty());
}

class PromptEncoder {
 public:
  PromptEncoder(const ChatOptions& options, const std::vector<Turn>& turns, bool keep_reasoning)
      : options_(options), turns_(turns), keep_reasoning_(keep_reasoning), out_(prompt_) {
    for (size_t i = 0; i < turns.size(); ++i) {
      if (IsUserTurn(i)) num_until_last_user_ = i + 1;
    }
  }

  EncodedPrompt Encode() && {
    if (options_.add_default_bos) out_.Control(kBosToken);
    if (turns_.empty()) return std::move(prompt_);
    const bool has_effort_line = Thinking();
    if (has_effort_line || turns_[0].role == Role::kSystem) out_.Control(kSystemToken);
    if (has_effort_line) {
      out_.Text(Replace(kEffortLine, "{n}", std::to_string(options_.reasoning_effort)));
    }
    for (size_t i = 0; i < turns_.size(); ++i) {
      RenderTurn(i);
      RenderHeader(i);
    }
    return std::move(prompt_);
  }

 private:
  bool Thinking() const { return options_.thinking_mode == ThinkingMode::kThinking; }

  // A late system message counts as a user turn.
  bool IsUserTurn(size_t i) const {
    return turns_[i].role == Role::kUser || (turns_[i].role == Role::kSystem && i > 0);
  }

  void RenderTurn(size_t i) {
    const Turn& turn = turns_[i];
    switch (turn.role) {
      case Role::kSystem:
        if (i > 0) out_.Control(kSystemToken);
        RenderSystem(*turn.messages[0]);
        prompt_.start_state = StartState::kNone;
        break;
      case Role::kLatestReminder:
        out_.Control(kLatestReminderToken);
        out_.Blocks(turn.messages[0]->content);
        break;
      case Role::kAssistant:
        RenderAssistant(i);
        break;
      default:
        out_.Control(kUserToken);
        RenderUser(turn);
        prompt_.start_state = StartState::kNone;
    }
  }

  void RenderSystem(const ChatMessage& message) {
    out_.Blocks(message.content);
    if (!message.tools.empty()) {
      std::string schemas;
      for (const ToolDefinition& tool : message.tools) {
        if (!schemas.empty()) schemas += kSchemaSeparator;
        schemas += tool.function_json;
      }
      out_.Text(kSectionSeparator);
      out_.Around(kToolsSection, "{schemas}", schemas);
    }
    if (!message.response_format.empty()) {
      out_.Text(kSectionSeparator);
      out_.Around(kResponseFormatSection, "{schema}", message.response_format);
    }
  }

  void RenderUser(const Turn& turn) {
    for (size_t b = 0; b < turn.blocks.size(); ++b) {
      if (b > 0) out_.Text(kBlockSeparator);
      const TurnBlock& block = turn.blocks[b];
      if (block.result == nullptr) {
        out_.Block(*block.block);
        continue;
      }
      out_.Text(kToolResultOpen);
      out_.Blocks(*block.result, /*leave_out_unsupported=*/block.block == nullptr);
      out_.Text(kToolResultClose);
    }
  }

  void RenderAssistant(size_t i) {
    const Turn& turn = turns_[i];
    const bool is_task_output = i > 0 && turns_[i - 1].task;
    if (Thinking() && (keep_reasoning_ || i >= num_until_last_user_) && !is_task_output) {
      std::string reasoning;
      for (const ChatMessage* message : turn.messages) {
        if (!reasoning.empty() && !message->reasoning.empty()) reasoning += kBlockSeparator;
        reasoning += message->reasoning;
      }
      out_.Text(reasoning);
      out_.Control(kThinkCloseToken);
    }
    bool empty = true;
    std::vector<const ToolCall*> calls;
    for (const ChatMessage* message : turn.messages) {
      for (const ToolCall& call : message->tool_calls) calls.push_back(&call);
      if (IsEmpty(message->content)) continue;
      if (!empty) out_.Text(kBlockSeparator);
      empty = false;
      out_.Blocks(message->content);
    }
    if (!calls.empty()) RenderCalls(calls);
    if (turn.wo_eos) {
      const bool begun = !empty || !calls.empty();
      prompt_.start_state = begun ? StartState::kAnswerContinued : StartState::kAnswer;
    } else {
      out_.Control(kEosToken);
      prompt_.start_state = StartState::kNone;
    }
  }

  void RenderCalls(const std::vector<const ToolCall*>& calls) {
    out_.Text(kBeforeCalls);
    out_.Literal(kCallsOpen);
    for (const ToolCall* call : calls) {
      out_.Text(kBetweenTags);
      out_.Around(kInvokeOpen, "{name}", call->name);
      const std::vector<Parameter> parameters = Parameters(*call);
      for (const Parameter& parameter : parameters) {
        out_.Text(kBetweenTags);
        const std::string open =
            Replace(kParameterOpen, "{is_string}", parameter.is_string ? "true" : "false");
        out_.Around(open, "{key}", parameter.key);
        out_.Text(parameter.value);
        out_.Literal(kParameterClose);
      }
      if (parameters.empty()) out_.Text(kBetweenTags);
      out_.Text(kBetweenTags);
      out_.Literal(kInvokeClose);
    }
    out_.Text(kBetweenTags);
    out_.Literal(kCallsClose);
  }

  // What asks for the assistant's answer to turn i: a task's token, the header, or nothing.
  void RenderHeader(size_t i) {
    const bool is_last = i + 1 == turns_.size();
    if (!is_last && turns_[i + 1].role != Role::kAssistant &&
        turns_[i + 1].role != Role::kLatestReminder) {
      return;
    }
    const std::optional<Task> task = turns_[i].task;
    if (task ? *task == Task::kAction : IsUserTurn(i)) {
      out_.Control(kAssistantToken);
      const bool opens = Thinking() && (keep_reasoning_ || i + 1 >= num_until_last_user_);
      out_.Control(opens ? kThinkOpenToken : kThinkCloseToken);
      prompt_.start_state = opens ? StartState::kReasoning : StartState::kAnswer;
    }
    if (task) {
      out_.Control(TaskToken(*task));
      prompt_.start_state = StartState::kAnswer;
    }
  }

  const ChatOptions& options_;
  const std::vector<Turn>& turns_;
  const bool keep_reasoning_;
  size_t num_until_last_user_ = 0;  // turns up to and with the last user turn
  EncodedPrompt prompt_;
  PromptWriter out_;
};

// The messages with the request's own tools and response format on the first system message.
Result<std::vector<ChatMessage>> PlaceRequestSections(const ChatRequest& request) {
  std::vector<ChatMessage> messages = request.messages;
  if (request.tools.empty() && request.response_format.empty()) return messages;
  if (messages.empty() || messages[0].role != Role::kSystem) {
    messages.insert(messages.begin(), ChatMessage::Text(Role::kSystem, ""));
  }
  ChatMessage& system = messages[0];
  system.tools.insert(system.tools.end(), request.tools.begin(), request.tools.end());
  if (!request.response_format.empty()) {
    if (!system.response_format.empty()) {
      return MakeChatError(ChatErrorKind::kInvalidRequest,
                           "response_format stands both on the request and on messages[0]");
    }
    system.response_format = request.response_format;
  }
  return messages;
}

}  // namespace

std::string EncodedPrompt::Text() const {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

Result<EncodedPrompt> EncodePrompt(const ChatRequest& request) {
  const ChatOptions& options = request.options;
  if (options.reasoning_effort < 1 || options.reasoning_effort > 100) {
    return MakeChatError(ChatErrorKind::kInvalidReasoningEffort,
                         fmt::format("reasoning_effort is {}; allowed are the integers 1 to 100",
                                     options.reasoning_effort));
  }
  DI_ASSIGN_OR_RETURN(const std::vector<ChatMessage> messages, PlaceRequestSections(request));
  std::vector<Turn> turns = MergeMessages(messages, messages.size() - request.messages.size());
  DI_RETURN_IF_ERROR(OrderResults(turns));
  const bool keep_reasoning =
      !options.drop_thinking ||
      std::any_of(messages.begin(), messages.end(), [](const auto& m) { return !m.tools.empty(); });
  return PromptEncoder(options, turns, keep_reasoning).Encode();
}

}  // namespace deepinfer
