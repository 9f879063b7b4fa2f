// Standard output with every error seen, and small helpers for the terminal.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"

namespace deepinfer::cli {

// Buffered writer of one file descriptor, which it does not own. After an error nothing more is
// written and every call repeats it. Not thread-safe.
class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}
  // Buffered up to 64 KiB.
  Status Write(std::string_view text);
  // Hands everything to the operating system.
  Status Flush();
  // The reader closed the pipe: the program then ends quietly.
  bool closed_by_reader() const { return closed_by_reader_; }

 private:
  int descriptor_;
  std::string buffer_;
  Status status_;
  bool closed_by_reader_ = false;
};

// The program's standard output.
Output& StandardOutput();

// Writes a line to standard error; failures there have nowhere to go and are ignored.
void PrintNote(std::string_view line);

bool IsTerminal(int descriptor);
// Whether standard output shows colours: a terminal, and NO_COLOR is unset.
bool OutputShowsStyle();

// All of standard input; kResourceExhausted for more than max_bytes or than memory holds.
Result<std::string> ReadStandardInput(size_t max_bytes = size_t{1} << 30);

// Whether a path that the user chose can be written, for use before long work whose result an error
// would lose: its folder exists and can be written, and it is no folder, pipe or device.
Status CheckUserFile(const std::filesystem::path& path);

// WriteFileAtomically for a path that the user chose: refuses one that exists and is no regular
// file, since the renaming would replace a device node or a pipe by a file.
Status WriteUserFile(const std::filesystem::path& path, std::string_view contents);

// Draws "what  42 %" on one line of standard error when that is a terminal, else nothing. The line
// is erased when the work is done.
ProgressFn TerminalProgress();

}  // namespace deepinfer::cli
