// Turns the model's output into reasoning, content and tool calls while it arrives
// (spec chat section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "chat/start_state.h"

namespace deepinfer {

enum class OutputErrorKind {
  kUnfinishedBlock,     // the output ended inside tool markup
  kBadName,             // no function name, or it spans a line or an unclosed quote
  kBadParameter,        // no name, or no string="true" / "false" exactly in that form
  kDuplicateParameter,  // a name twice in one call
  kInvalidJson,         // a string="false" value that is no JSON
  kMalformedBlock,      // text or a tag where it may not stand
};

// "unfinished_block"
std::string_view OutputErrorKindName(OutputErrorKind kind);

struct OutputError {
  OutputErrorKind kind = OutputErrorKind::kMalformedBlock;
  std::string message;  // starts with the kind's name
};

struct OutputEvent {
  enum class Kind {
    kReasoning,      // text: more reasoning
    kContent,        // text: more content
    kCallBegin,      // text: the function's name
    kCallArguments,  // text: more of the arguments' JSON text
    kCallEnd,        // the call is complete and may be executed; not before
    kError,          // the output cannot be parsed; text: the message. A call that is open is void
  };
  Kind kind = Kind::kContent;
  std::string text;
  std::optional<OutputErrorKind> error;  // kError
};

struct OutputParserOptions {
  // Instead of ending with an error, return the tool block and all that follows it as content, as
  // written. Calls are then held back until their block is complete.
  bool raw_text_on_error = false;
};

// Incremental and copyable (a copy is a fork). Any split of the same bytes gives the same text and
// calls; events are never taken back. Work is linear in the bytes pushed. Text handed out is valid
// UTF-8 and never ends inside a character.
class OutputParser {
 public:
  explicit OutputParser(StartState start, OutputParserOptions options = {});

  // Takes more output, cut anywhere, and returns what is certain by now.
  std::vector<OutputEvent> Push(std::string_view bytes);
  // The output has ended: releases what was held. Later calls return nothing.
  std::vector<OutputEvent> Finish();

  // Nothing more can come: the end token, the end of a tool block, an error or Finish was seen.
  bool done() const { return mode_ == Mode::kDone; }
  // The reasoning has not been closed (yet).
  bool in_reasoning() const { return reasoning_; }

 private:
  enum class Mode {
    kText,           // reasoning or answer
    kTag,            // after <｜DSML｜ or </｜DSML｜: space and word
    kInvokeName,     // after "invoke"
    kParameterName,  // after "parameter"
    kStringValue,
    kJsonValue,
    kBetweenTags,  // inside a block
    kRawTail,      // after an error with raw_text_on_error
    kDone,
  };
  enum class Place { kText, kBlock, kInvoke };  // what surrounds a tag

  void DecodeByte(uint8_t byte);
  void FlushBrokenCharacter();
  void Feed(std::string_view character);
  void FeedText(std::string_view character);
  void AcceptMarker();
  void FeedTag(std::string_view character);
  void FeedTagInText(std::string_view character);
  void EndOpeningTag(std::string_view character);
  void EndClosingTag();
  void FeedInvokeName(std::string_view character);
  void FeedParameterName(std::string_view character);
  void FeedValue(std::string_view character);
  void FeedBetweenTags(std::string_view character);
  void FeedRawTail(std::string_view character);

  void AppendText(std::string_view text);
  void ReleaseNewlines();
  void OpenBlock();
  void CloseBlock();
  void BeginParameter(std::string name, bool is_string);
  void EndValue();
  void EndInvoke();
  void AppendArguments(std::string_view text);
  void Emit(OutputEvent::Kind kind, std::string_view text);
  void Fail(OutputErrorKind kind, std::string_view detail);

  OutputParserOptions options_;
  Mode mode_ = Mode::kText;
  bool reasoning_ = false;
  bool at_start_ = true;   // leading newlines are still dropped
  uint64_t newlines_ = 0;  // held: they may belong to a marker that follows
  std::string character_;  // bytes of a character that is not complete
  std::string held_;       // text bytes that may begin a marker
  std::vector<OutputEvent> events_;

  // Tool markup.
  Place place_ = Place::kText;
  bool wrapper_open_ = false;  // an outer tag was read
  bool closing_ = false;       // the tag began with </
  std::string tag_;            // after the marker
  bool spaced_ = false;        // the open parameter's tag is written with a space
  std::string call_name_;
  std::string parameter_;  // the open parameter's name, then its value if it is JSON
  std::unordered_set<std::string> parameters_;  // names of the open call
  bool any_call_ = false;                       // the block has a complete call

  std::string raw_;                       // the block as written, for raw_text_on_error
  std::vector<OutputEvent> held_events_;  // of the block, for raw_text_on_error
};

struct ParsedToolCall {
  std::string name;
  std::string arguments;  // a JSON object as text
  friend bool operator==(const ParsedToolCall&, const ParsedToolCall&) = default;
};

// The sum of events.
struct ParsedOutput {
  std::string reasoning;
  std::string content;
  std::vector<ParsedToolCall> tool_calls;  // complete ones only
  std::optional<ParsedToolCall> open_call;
  std::optional<OutputError> error;

  void Add(const std::vector<OutputEvent>& events);
};

// A whole output at once.
ParsedOutput ParseOutput(std::string_view text, StartState start, OutputParserOptions options = {});

}  // namespace deepinfer
