#include "cli/line_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace deepinfer::cli {
namespace {
constexpr size_t kBlockBytes = size_t{1} << 16;
}  // namespace

Result<bool> LineReader::Fill() {
  if (descriptor_ < 0) return false;
  buffer_.resize(kBlockBytes);
  position_ = 0;
  ssize_t n = 0;
  do {
    n = ::read(descriptor_, buffer_.data(), buffer_.size());
  } while (n < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(n > 0 ? static_cast<size_t>(n) : 0);
  if (n < 0) {
    return MakeError(ErrorCode::kIo, "cannot read standard input: {}", std::strerror(error));
  }
  return n > 0;
}

Result<LineReader::Outcome> LineReader::Next(std::string& line) {
  line.clear();
  bool too_long = false;
  for (;;) {
    if (position_ == buffer_.size()) {
      DI_ASSIGN_OR_RETURN(const bool filled, Fill());
      if (!filled) {
        if (too_long) return Outcome::kTooLong;
        return line.empty() ? Outcome::kEnd : Outcome::kLine;
      }
    }
    const size_t end = std::min(buffer_.find('\n', position_), buffer_.size());
    if (line.size() + (end - position_) > kMaxLineBytes) {
      too_long = true;
      line = {};
    }
    if (!too_long) line.append(buffer_, position_, end - position_);
    position_ = end;
    if (end == buffer_.size()) continue;
    ++position_;
    return too_long ? Outcome::kTooLong : Outcome::kLine;
  }
}

Error LineTooLong() {
  return {ErrorCode::kResourceExhausted,
          fmt::format("the line has more than the allowed {} bytes", LineReader::kMaxLineBytes)};
}

}  // namespace deepinfer::cli
