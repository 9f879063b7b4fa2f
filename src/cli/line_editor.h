// Reads lines from a person (with editing and history) or from a pipe.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/line_reader.h"

namespace deepinfer::cli {

class LineEditor {
 public:
  enum class Outcome { kLine, kTooLong, kInterrupted, kEnd };

  // Edits when standard input and standard output are a terminal, else reads plainly and shows no
  // prompt. Editing reads UTF-8 whatever the locale: it sets the process's LC_CTYPE. One instance a
  // process; not thread-safe.
  LineEditor();
  bool interactive() const { return interactive_; }

  // kInterrupted: Ctrl-C, which throws the line away. kEnd: Ctrl-D or the end of the pipe. kTooLong
  // and errors: as LineReader, for a pipe.
  Result<Outcome> Read(const std::string& prompt, std::string& line);

 private:
  bool interactive_;
  LineReader pipe_;
};

}  // namespace deepinfer::cli
