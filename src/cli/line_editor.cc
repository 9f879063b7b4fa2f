#include "cli/line_editor.h"

#include <editline/readline.h>
#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <cstring>

#include "cli/interrupt.h"
#include "cli/output.h"

namespace deepinfer::cli {
namespace {

// The library decodes keys by LC_CTYPE and drops what that cannot express. Other categories stay
// "C": numbers are written and read in one way everywhere.
void UseUtf8Characters() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

LineEditor::LineEditor()
    : interactive_(IsTerminal(STDIN_FILENO) && IsTerminal(STDOUT_FILENO)), pipe_(STDIN_FILENO) {
  if (!interactive_) return;
  UseUtf8Characters();
  using_history();
}

Result<LineEditor::Outcome> LineEditor::Read(const std::string& prompt, std::string& line) {
  if (!interactive_) {
    DI_ASSIGN_OR_RETURN(const LineReader::Outcome outcome, pipe_.Next(line));
    if (outcome == LineReader::Outcome::kTooLong) return Outcome::kTooLong;
    return outcome == LineReader::Outcome::kLine ? Outcome::kLine : Outcome::kEnd;
  }
  Interrupt().store(false);
  char* text = readline(prompt.c_str());
  if (text == nullptr) {
    // An interrupted read looks like the end of input; only the flag tells them apart.
    return Interrupt().exchange(false) ? Outcome::kInterrupted : Outcome::kEnd;
  }
  line = text;
  std::free(text);
  if (!line.empty()) add_history(line.c_str());
  return Outcome::kLine;
}

}  // namespace deepinfer::cli
