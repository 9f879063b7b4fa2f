// Reads lines from a person (with editing and history) or from a pipe.
#pragma once

#include <string>

namespace deepinfer::cli {

class LineEditor {
 public:
  enum class Outcome { kLine, kInterrupted, kEnd };

  // Edits when standard input and standard output are a terminal, else reads plainly and shows no
  // prompt. One instance a process; not thread-safe.
  LineEditor();
  bool interactive() const { return interactive_; }

  // kInterrupted: Ctrl-C, which throws the line away. kEnd: Ctrl-D or the end of the pipe.
  Outcome Read(const std::string& prompt, std::string& line);

 private:
  bool interactive_;
};

}  // namespace deepinfer::cli
