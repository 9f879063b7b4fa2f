#include "chat/tool_block_parser.h"

#include <fmt/format.h>

#include "chat/chat_json.h"
#include "chat/tokens.h"
#include "chat/utf8_repair.h"

namespace deepinfer {
namespace {

constexpr std::string_view kInvoke = "invoke";
constexpr std::string_view kParameter = "parameter";
constexpr std::string_view kNamePrefix = " name=\"";
constexpr std::string_view kStringTrue = "\" string=\"true\">";
constexpr std::string_view kStringFalse = "\" string=\"false\">";
constexpr std::string_view kCloserSpaced = "</｜DSML｜ parameter>";
constexpr std::string_view kCloserUnspaced = "</｜DSML｜parameter>";

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// No name goes over a line or holds the markup's own token.
bool EndsName(std::string_view text) {
  return text.ends_with('\n') || text.ends_with('\r') || text.ends_with(kDsmlToken);
}

// A name for a message: valid UTF-8 of bounded length, on one line.
std::string Shown(std::string_view name) {
  constexpr size_t kMaxShownBytes = 80;
  std::string valid;
  Utf8Repair repair;
  repair.Push(name.substr(0, kMaxShownBytes), valid);
  if (name.size() > kMaxShownBytes) valid += "...";
  std::string shown;
  AppendJsonEscaped(valid, shown);
  return shown;
}

}  // namespace

std::string_view OutputErrorKindName(OutputErrorKind kind) {
  switch (kind) {
    case OutputErrorKind::kUnfinishedBlock:
      return "unfinished_block";
    case OutputErrorKind::kBadName:
      return "bad_name";
    case OutputErrorKind::kBadParameter:
      return "bad_parameter";
    case OutputErrorKind::kDuplicateParameter:
      return "duplicate_parameter";
    case OutputErrorKind::kInvalidJson:
      return "invalid_json";
    case OutputErrorKind::kMalformedBlock:
      return "malformed_block";
  }
  return "unknown";
}

bool TagWord::Feed(char byte) {
  const bool is_word = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
  if (!is_word && !(byte == ' ' && text_.empty())) return false;
  text_ += byte;
  return true;
}

bool OpensBlock(const TagWord& word, char next) {
  if (next == '>') return !word.word().empty();
  return IsBlank(next) && (word.word() == kInvoke || word.word() == kParameter);
}

void ToolBlockParser::Feed(char byte, std::vector<OutputEvent>& events) {
  events_ = &events;
  switch (state_) {
    case State::kOpeningTag:
    case State::kClosingTag:
      FeedTag(byte);
      break;
    case State::kInvokeName:
      FeedInvokeName(byte);
      break;
    case State::kParameterName:
      FeedParameterName(byte);
      break;
    case State::kValue:
      FeedValue(byte);
      break;
    case State::kBetweenTags:
      FeedBetweenTags(byte);
      break;
    case State::kClosed:
    case State::kFailed:
      break;
  }
  events_ = nullptr;
}

void ToolBlockParser::Finish(std::vector<OutputEvent>& events) {
  events_ = &events;
  if (open()) EndOfOutput();
  events_ = nullptr;
}

// Complete calls count without their outer closing tag.
void ToolBlockParser::EndOfOutput() {
  const bool between = state_ == State::kBetweenTags || state_ == State::kClosingTag;
  if (between && !in_invoke_ && has_call_) {
    state_ = State::kClosed;
    return;
  }
  Fail(OutputErrorKind::kUnfinishedBlock,
       in_invoke_ ? fmt::format("the output ended inside the call of \"{}\"", Shown(call_name_))
                  : "the output ended inside a block of calls");
}

// Something stands where a tag that is expected next must stand. After a call without outer tags
// nothing more is expected: the block is over.
void ToolBlockParser::Misplaced(std::string_view what) {
  if (has_call_ && !has_wrapper_ && !in_invoke_) {
    state_ = State::kClosed;
    return;
  }
  Fail(OutputErrorKind::kMalformedBlock,
       in_invoke_ ? fmt::format("{} inside the call of \"{}\"", what, Shown(call_name_))
                  : fmt::format("{} inside a block of calls", what));
}

void ToolBlockParser::FeedBetweenTags(char byte) {
  if (marker_.empty() && IsBlank(byte)) return;
  marker_ += byte;
  if (marker_ == kDsmlOpen || marker_ == kDsmlClose) {
    state_ = marker_ == kDsmlOpen ? State::kOpeningTag : State::kClosingTag;
    marker_.clear();
    word_.Clear();
  } else if (marker_ == kEosToken) {
    EndOfOutput();
  } else if (!kDsmlOpen.starts_with(marker_) && !kDsmlClose.starts_with(marker_) &&
             !kEosToken.starts_with(marker_)) {
    Misplaced("text where a tag must stand");
  }
}

void ToolBlockParser::FeedTag(char byte) {
  // The end token may cut a tag off.
  if (!marker_.empty() || byte == kEosToken[0]) {
    marker_ += byte;
    if (marker_ == kEosToken) return EndOfOutput();
    if (kEosToken.starts_with(marker_)) return;
    return Misplaced("a broken tag");
  }
  if (word_.Feed(byte)) return;
  if (state_ == State::kOpeningTag) return FeedOpeningTag(byte);
  if (byte != '>' || word_.word().empty()) return Misplaced("a broken tag");
  FeedClosingTag();
}

void ToolBlockParser::FeedOpeningTag(char byte) {
  const std::string_view word = word_.word();
  prefix_matched_ = 0;
  attribute_.clear();
  if (word == kInvoke && !in_invoke_) {
    state_ = State::kInvokeName;
    return FeedInvokeName(byte);
  }
  if (word == kParameter && in_invoke_) {
    state_ = State::kParameterName;
    return FeedParameterName(byte);
  }
  const bool is_outer = byte == '>' && !word.empty() && word != kInvoke && word != kParameter;
  if (is_outer && !in_invoke_ && !has_wrapper_ && !has_call_) {
    has_wrapper_ = true;
    state_ = State::kBetweenTags;
    return;
  }
  Misplaced(fmt::format("an opening tag \"{}\"", Shown(word)));
}

void ToolBlockParser::FeedClosingTag() {
  const std::string_view word = word_.word();
  if (in_invoke_ && word == kInvoke) {
    AddArguments(parameters_.empty() ? "{}" : "}");
    events_->push_back({OutputEvent::Kind::kCallEnd, "", std::nullopt});
    in_invoke_ = false;
    has_call_ = true;
    state_ = State::kBetweenTags;
  } else if (!in_invoke_ && word != kInvoke && word != kParameter) {
    state_ = State::kClosed;
  } else {
    Misplaced(fmt::format("a closing tag \"{}\"", Shown(word)));
  }
}

// Reads name=" after the tag's word. True while it is not complete, or if it failed.
bool ToolBlockParser::FeedAttributePrefix(char byte, OutputErrorKind error) {
  if (prefix_matched_ == kNamePrefix.size()) return false;
  if (byte == kNamePrefix[prefix_matched_]) {
    ++prefix_matched_;
  } else {
    Fail(error, fmt::format("a tag \"{}\" without name=\"...\"", word_.word()));
  }
  return true;
}

void ToolBlockParser::FeedInvokeName(char byte) {
  if (FeedAttributePrefix(byte, OutputErrorKind::kBadName)) return;
  const bool quoted = attribute_.ends_with('"');
  attribute_ += byte;
  if (quoted && byte == '>') {
    call_name_ = attribute_.substr(0, attribute_.size() - 2);
    events_->push_back({OutputEvent::Kind::kCallBegin, call_name_, std::nullopt});
    in_invoke_ = true;
    parameters_.clear();
    state_ = State::kBetweenTags;
  } else if (quoted || attribute_ == "\"" || EndsName(attribute_)) {
    Fail(OutputErrorKind::kBadName,
         fmt::format("\"{}\" is no function name in quotes on one line", Shown(attribute_)));
  }
}

// A name may hold quotes, so it ends where the string attribute follows.
void ToolBlockParser::FeedParameterName(char byte) {
  if (FeedAttributePrefix(byte, OutputErrorKind::kBadParameter)) return;
  attribute_ += byte;
  const std::string_view attribute = attribute_;
  if (attribute.ends_with(kStringTrue)) {
    BeginParameter(attribute.substr(0, attribute.size() - kStringTrue.size()), true);
  } else if (attribute.ends_with(kStringFalse)) {
    BeginParameter(attribute.substr(0, attribute.size() - kStringFalse.size()), false);
  } else if (attribute.ends_with("\">") || EndsName(attribute)) {
    Fail(OutputErrorKind::kBadParameter,
         fmt::format("parameter {} of \"{}\" without string=\"true\" or string=\"false\"",
                     parameters_.size() + 1, Shown(call_name_)));
  }
}

void ToolBlockParser::BeginParameter(std::string_view name, bool is_string) {
  const bool is_first = parameters_.empty();
  parameter_ = name;
  if (!parameters_.insert(parameter_).second) {
    return Fail(OutputErrorKind::kDuplicateParameter,
                fmt::format("parameter \"{}\" stands twice in the call of \"{}\"",
                            Shown(parameter_), Shown(call_name_)));
  }
  std::string opening = is_first ? "{\"" : ", \"";
  AppendJsonEscaped(parameter_, opening);
  opening += "\": ";
  is_string_ = is_string;
  if (is_string) {
    AddArguments(opening + "\"");
    json_.clear();
  } else {
    json_ = std::move(opening);
  }
  value_begin_ = json_.size();
  closer_ = word_.spaced() ? kCloserSpaced : kCloserUnspaced;
  closer_matched_ = 0;
  state_ = State::kValue;
}

// '<' stands only at the closer's beginning, so a mismatch can only restart it there.
void ToolBlockParser::FeedValue(char byte) {
  if (byte == closer_[closer_matched_]) {
    if (++closer_matched_ == closer_.size()) EndValue();
    return;
  }
  AddValue(closer_.substr(0, closer_matched_));
  closer_matched_ = byte == closer_[0] ? 1 : 0;
  if (closer_matched_ == 0) AddValue({&byte, 1});
}

void ToolBlockParser::AddValue(std::string_view text) {
  if (!is_string_) {
    json_ += text;
  } else if (!text.empty()) {
    std::string escaped;
    AppendJsonEscaped(text, escaped);
    AddArguments(escaped);
  }
}

void ToolBlockParser::EndValue() {
  state_ = State::kBetweenTags;
  if (is_string_) return AddArguments("\"");
  const std::string problem = CheckJson(std::string_view(json_).substr(value_begin_), /*depth=*/1);
  if (problem.empty()) return AddArguments(json_);
  Fail(OutputErrorKind::kInvalidJson, fmt::format("parameter \"{}\" of \"{}\": {}",
                                                  Shown(parameter_), Shown(call_name_), problem));
}

void ToolBlockParser::AddArguments(std::string_view text) {
  if (!events_->empty() && events_->back().kind == OutputEvent::Kind::kCallArguments) {
    events_->back().text += text;
  } else {
    events_->push_back({OutputEvent::Kind::kCallArguments, std::string(text), std::nullopt});
  }
}

void ToolBlockParser::Fail(OutputErrorKind kind, std::string_view detail) {
  state_ = State::kFailed;
  events_->push_back(
      {OutputEvent::Kind::kError, fmt::format("{}: {}", OutputErrorKindName(kind), detail), kind});
}

}  // namespace deepinfer
