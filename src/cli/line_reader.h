// Lines of a pipe or of a text, each of bounded length.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace deepinfer::cli {

// Not thread-safe.
class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = size_t{64} << 20;
  enum class Outcome { kLine, kTooLong, kEnd };

  // Reads a file descriptor, which it does not own, as its bytes arrive.
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}
  explicit LineReader(std::string text) : buffer_(std::move(text)) {}

  // The next line without its line break; the last one may lack it. kTooLong: the line has more
  // than kMaxLineBytes; it was skipped and `line` is empty. kIo when the descriptor cannot be read.
  Result<Outcome> Next(std::string& line);

 private:
  // False at the end.
  Result<bool> Fill();

  int descriptor_ = -1;
  std::string buffer_;
  size_t position_ = 0;
};

// Says that a line was kTooLong.
Error LineTooLong();

}  // namespace deepinfer::cli
