// Turns the model's output into reasoning, content and tool calls while it arrives
// (spec chat section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/output_event.h"
#include "chat/start_state.h"
#include "chat/tool_block_parser.h"
#include "chat/utf8_repair.h"

namespace deepinfer {

struct OutputParserOptions {
  // Instead of ending with an error, return the block of calls and all that follows it as content,
  // as written. Calls are then held back until their block is complete.
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

  // Nothing more can come: the end token, the end of a block of calls, an error or Finish was seen.
  bool done() const { return mode_ == Mode::kDone; }
  // The reasoning has not been closed (yet).
  bool in_reasoning() const { return reasoning_; }

 private:
  enum class Mode {
    kText,     // reasoning or answer
    kTag,      // after kDsmlOpen or kDsmlClose in text, which may be a tag
    kBlock,    // inside a block of calls
    kRawTail,  // after an error, with raw_text_on_error
    kDone,
  };

  void Feed(std::string_view characters);
  void FeedText(char byte);
  void FeedTag(char byte);
  void FeedBlock(char byte);
  void FeedRawTail(char byte);
  void AcceptMarker(std::string_view marker);
  void EndTag();
  void OpenBlock();
  void SettleBlock();
  void EndOfOutput();

  void AddText(std::string_view text);
  void AddTextByte(char byte);
  void ReleaseNewlines();
  void Emit(OutputEvent::Kind kind, std::string_view text);

  OutputParserOptions options_;
  Mode mode_ = Mode::kText;
  bool reasoning_;
  bool at_start_;          // leading newlines are dropped
  uint64_t newlines_ = 0;  // held: they may belong to a marker that follows
  Utf8Repair utf8_;
  std::string held_;  // bytes that may begin a marker
  std::vector<OutputEvent> events_;

  bool is_closing_ = false;  // the tag in text began with kDsmlClose
  TagWord word_;             // of the tag in text
  ToolBlockParser block_;
  std::string raw_;                        // the block as written, for raw_text_on_error
  std::vector<OutputEvent> block_events_;  // of the open block
};

struct ParsedToolCall {
  std::string name;
  std::string arguments;  // a JSON object as text
  friend bool operator==(const ParsedToolCall&, const ParsedToolCall&) = default;
};

struct OutputError {
  OutputErrorKind kind = OutputErrorKind::kMalformedBlock;
  std::string message;
};

// The sum of events.
struct ParsedOutput {
  std::string reasoning;
  std::string content;
  std::vector<ParsedToolCall> tool_calls;   // complete ones only
  std::optional<ParsedToolCall> open_call;  // begun and not complete: never to be executed
  std::optional<OutputError> error;

  void Add(const std::vector<OutputEvent>& events);
};

// A whole output at once.
ParsedOutput ParseOutput(std::string_view text, StartState start, OutputParserOptions options = {});

}  // namespace deepinfer
