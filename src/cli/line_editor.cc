#include "cli/line_editor.h"

#include <editline/readline.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "cli/interrupt.h"
#include "cli/output.h"

namespace deepinfer::cli {

LineEditor::LineEditor() : interactive_(IsTerminal(STDIN_FILENO) && IsTerminal(STDOUT_FILENO)) {
  if (interactive_) using_history();
}

LineEditor::Outcome LineEditor::Read(const std::string& prompt, std::string& line) {
  if (!interactive_) {
    return std::getline(std::cin, line) ? Outcome::kLine : Outcome::kEnd;
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
