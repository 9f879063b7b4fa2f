// Shows an answer on standard output while it arrives.
#pragma once

#include "chat/output_parser.h"
#include "cli/output.h"

namespace deepinfer::cli {

// Reasoning first (dimmed where the terminal shows styles), an empty line, the answer, then one
// line a tool call. Every piece is flushed.
class StreamPrinter {
 public:
  explicit StreamPrinter(Output& output) : output_(output), styled_(OutputShowsStyle()) {}

  // False when the output cannot be written; `status` says why.
  bool Print(const OutputEvent& event);
  // Ends the last line and the style.
  Status Finish();
  const Status& status() const { return status_; }

 private:
  enum class Part { kNone, kReasoning, kContent, kCall };
  void Enter(Part part);
  void Write(std::string_view text);

  Output& output_;
  bool styled_;
  Part part_ = Part::kNone;
  bool at_line_start_ = true;
  Status status_;
};

}  // namespace deepinfer::cli
