#include "cli/stream_printer.h"

namespace deepinfer::cli {
namespace {
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";
}  // namespace

bool StreamPrinter::Print(const OutputEvent& event) {
  switch (event.kind) {
    case OutputEvent::Kind::kReasoning:
      Enter(Part::kReasoning);
      Write(event.text);
      break;
    case OutputEvent::Kind::kContent:
      Enter(Part::kContent);
      Write(event.text);
      break;
    case OutputEvent::Kind::kCallBegin:
      Enter(Part::kCall);
      Write("call " + event.text + " ");
      break;
    case OutputEvent::Kind::kCallArguments:
      Write(event.text);
      break;
    case OutputEvent::Kind::kCallEnd:
      Write("\n");
      break;
    case OutputEvent::Kind::kError:  // reported by whoever reads the completion
      break;
  }
  if (status_) status_ = output_.Flush();
  return status_.has_value();
}

void StreamPrinter::Enter(Part part) {
  if (part == part_) return;
  const Part left = part_;
  part_ = part;
  if (left == Part::kReasoning && styled_) Write(kPlain);
  if (left != Part::kNone) Write(at_line_start_ ? "\n" : "\n\n");
  if (part == Part::kReasoning && styled_) Write(kDim);
}

void StreamPrinter::Write(std::string_view text) {
  if (text.empty() || !status_) return;
  if (text != kDim && text != kPlain) at_line_start_ = text.back() == '\n';
  status_ = output_.Write(text);
}

Status StreamPrinter::Finish() {
  if (part_ == Part::kReasoning && styled_) Write(kPlain);
  if (!at_line_start_) Write("\n");
  if (status_) status_ = output_.Flush();
  return status_;
}

}  // namespace deepinfer::cli
