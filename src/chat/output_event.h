// What the output parser reports.
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

struct OutputEvent {
  enum class Kind {
    kReasoning,      // text: more reasoning
    kContent,        // text: more content
    kCallBegin,      // text: the function's name
    kCallArguments,  // text: more of the arguments' JSON text
    kCallEnd,        // the call is complete and may be executed; not before
    kError,          // the output cannot be parsed; text: the message, after the error kind's name
                     // and a colon. A call that has begun is void
  };
  Kind kind = Kind::kContent;
  std::string text;
  std::optional<OutputErrorKind> error;  // kError
  friend bool operator==(const OutputEvent&, const OutputEvent&) = default;
};

}  // namespace deepinfer
