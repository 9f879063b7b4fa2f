#include "chat/output_parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "chat/tokens.h"

namespace deepinfer {
namespace {

// Up to so many newlines before a block of calls belong to it when it stands in the answer.
constexpr uint64_t kNewlinesBeforeBlock = 2;

constexpr auto kMarkers = [] {
  std::array<std::string_view, kControlTokens.size() + 2> markers{};
  std::copy(kControlTokens.begin(), kControlTokens.end(), markers.begin());
  markers[kControlTokens.size()] = kDsmlOpen;
  markers[kControlTokens.size() + 1] = kDsmlClose;
  return markers;
}();

bool BeginsMarker(std::string_view text) {
  return std::any_of(kMarkers.begin(), kMarkers.end(),
                     [&](std::string_view marker) { return marker.starts_with(text); });
}

bool IsMarker(std::string_view text) {
  return std::find(kMarkers.begin(), kMarkers.end(), text) != kMarkers.end();
}

}  // namespace

OutputParser::OutputParser(StartState start, OutputParserOptions options)
    : options_(options),
      reasoning_(start == StartState::kReasoning),
      at_start_(start != StartState::kAnswerContinued) {}

std::vector<OutputEvent> OutputParser::Push(std::string_view bytes) {
  std::string characters;
  utf8_.Push(bytes, characters);
  Feed(characters);
  return std::exchange(events_, {});
}

std::vector<OutputEvent> OutputParser::Finish() {
  std::string characters;
  utf8_.Finish(characters);
  Feed(characters);
  if (!done()) EndOfOutput();
  return std::exchange(events_, {});
}

void OutputParser::Feed(std::string_view characters) {
  for (const char byte : characters) {
    switch (mode_) {
      case Mode::kText:
        FeedText(byte);
        break;
      case Mode::kTag:
        FeedTag(byte);
        break;
      case Mode::kBlock:
        FeedBlock(byte);
        break;
      case Mode::kRawTail:
        FeedRawTail(byte);
        break;
      case Mode::kDone:
        return;
    }
  }
}

void OutputParser::FeedText(char byte) {
  const bool may_begin_marker = byte == kDsmlOpen[0] || byte == kDsmlToken[0];
  if (held_.empty() && !may_begin_marker) return AddTextByte(byte);
  held_ += byte;
  // Releases the shortest beginning after which the rest may begin a marker again.
  size_t released = 0;
  while (released < held_.size() && !BeginsMarker(std::string_view(held_).substr(released))) {
    ++released;
  }
  AddText(std::string_view(held_).substr(0, released));
  held_.erase(0, released);
  if (IsMarker(held_)) AcceptMarker(std::exchange(held_, {}));
}

void OutputParser::AcceptMarker(std::string_view marker) {
  if (marker == kDsmlOpen || marker == kDsmlClose) {
    mode_ = Mode::kTag;
    is_closing_ = marker == kDsmlClose;
    word_.Clear();
  } else if (marker == kEosToken) {
    EndOfOutput();
  } else if (marker == kThinkCloseToken && reasoning_) {
    reasoning_ = false;
    at_start_ = true;
    newlines_ = 0;
  }
}

void OutputParser::FeedTag(char byte) {
  // The end token may cut a tag off.
  if (!held_.empty() || byte == kEosToken[0]) {
    held_ += byte;
    if (held_ == kEosToken) {
      held_.clear();
      return EndOfOutput();
    }
    if (!kEosToken.starts_with(held_)) EndTag();
    return;
  }
  if (word_.Feed(byte)) return;
  if (is_closing_ && byte == '>' && !word_.word().empty()) {
    mode_ = Mode::kText;
  } else if (!is_closing_ && OpensBlock(word_, byte)) {
    OpenBlock();
    FeedBlock(byte);
  } else {
    held_ = byte;
    EndTag();
  }
}

// It was no tag: only its marker is swallowed.
void OutputParser::EndTag() {
  mode_ = Mode::kText;
  AddText(word_.text());
  Feed(std::exchange(held_, {}));
}

void OutputParser::OpenBlock() {
  if (!reasoning_) raw_.assign(newlines_, '\n');
  raw_ += kDsmlOpen;
  newlines_ = 0;
  mode_ = Mode::kBlock;
  for (const char byte : word_.text()) FeedBlock(byte);
}

void OutputParser::FeedBlock(char byte) {
  if (options_.raw_text_on_error) raw_ += byte;
  block_.Feed(byte, options_.raw_text_on_error ? block_events_ : events_);
  if (!block_.open()) SettleBlock();
}

// The block is complete or failed.
void OutputParser::SettleBlock() {
  mode_ = Mode::kDone;
  if (!options_.raw_text_on_error) return;
  if (!block_.failed()) {
    for (OutputEvent& event : block_events_) events_.push_back(std::move(event));
    return;
  }
  reasoning_ = false;
  if (block_events_.back().error == OutputErrorKind::kUnfinishedBlock) {
    if (raw_.ends_with(kEosToken)) raw_.resize(raw_.size() - kEosToken.size());
  } else {
    mode_ = Mode::kRawTail;
    // The byte at which it failed may begin the end token.
    if (raw_.ends_with(kEosToken[0])) {
      raw_.pop_back();
      held_ = kEosToken[0];
    }
  }
  Emit(OutputEvent::Kind::kContent, raw_);
}

void OutputParser::FeedRawTail(char byte) {
  held_ += byte;
  if (held_ == kEosToken) {
    mode_ = Mode::kDone;
  } else if (!kEosToken.starts_with(held_)) {
    // Its first byte stands nowhere else in the token.
    const size_t kept = byte == kEosToken[0] ? 1 : 0;
    Emit(OutputEvent::Kind::kContent, std::string_view(held_).substr(0, held_.size() - kept));
    held_.erase(0, held_.size() - kept);
  }
}

void OutputParser::EndOfOutput() {
  if (mode_ == Mode::kTag && !held_.empty()) EndTag();
  if (mode_ == Mode::kTag && !is_closing_) OpenBlock();
  if (mode_ == Mode::kBlock) {
    block_.Finish(options_.raw_text_on_error ? block_events_ : events_);
    SettleBlock();
  } else if (mode_ == Mode::kRawTail) {
    Emit(OutputEvent::Kind::kContent, held_);
  } else {
    AddText(std::exchange(held_, {}));
    if (!at_start_) ReleaseNewlines();
  }
  mode_ = Mode::kDone;
}

void OutputParser::AddText(std::string_view text) {
  for (const char byte : text) AddTextByte(byte);
}

void OutputParser::AddTextByte(char byte) {
  if (byte != '\n') {
    ReleaseNewlines();
    at_start_ = false;
    Emit(reasoning_ ? OutputEvent::Kind::kReasoning : OutputEvent::Kind::kContent, {&byte, 1});
  } else if (!at_start_) {
    if (!reasoning_ && newlines_ == kNewlinesBeforeBlock) {
      Emit(OutputEvent::Kind::kContent, "\n");
    } else {
      ++newlines_;
    }
  }
}

void OutputParser::ReleaseNewlines() {
  if (newlines_ == 0) return;
  Emit(reasoning_ ? OutputEvent::Kind::kReasoning : OutputEvent::Kind::kContent,
       std::string(newlines_, '\n'));
  newlines_ = 0;
}

void OutputParser::Emit(OutputEvent::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (!events_.empty() && events_.back().kind == kind) {
    events_.back().text += text;
  } else {
    events_.push_back({kind, std::string(text), std::nullopt});
  }
}

void ParsedOutput::Add(const std::vector<OutputEvent>& events) {
  for (const OutputEvent& event : events) {
    switch (event.kind) {
      case OutputEvent::Kind::kReasoning:
        reasoning += event.text;
        break;
      case OutputEvent::Kind::kContent:
        content += event.text;
        break;
      case OutputEvent::Kind::kCallBegin:
        open_call = ParsedToolCall{event.text, ""};
        break;
      case OutputEvent::Kind::kCallArguments:
        open_call->arguments += event.text;
        break;
      case OutputEvent::Kind::kCallEnd:
        tool_calls.push_back(std::move(*open_call));
        open_call.reset();
        break;
      case OutputEvent::Kind::kError:
        error = OutputError{*event.error, event.text};
        break;
    }
  }
}

ParsedOutput ParseOutput(std::string_view text, StartState start, OutputParserOptions options) {
  OutputParser parser(start, options);
  ParsedOutput output;
  output.Add(parser.Push(text));
  output.Add(parser.Finish());
  return output;
}

}  // namespace deepinfer
