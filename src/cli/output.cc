#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "base/file.h"

namespace deepinfer::cli {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

// The errno of a failed write, or 0.
int WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

Status RefuseSpecialFile(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) return {};
  return MakeError(ErrorCode::kInvalidArgument, "cannot write {}: it is no regular file",
                   path.string());
}

}  // namespace

Status Output::Write(std::string_view text) {
  DI_RETURN_IF_ERROR(status_);
  buffer_ += text;
  return buffer_.size() >= kBufferBytes ? Flush() : status_;
}

Status Output::Flush() {
  DI_RETURN_IF_ERROR(status_);
  const int error = WriteAll(descriptor_, buffer_);
  buffer_.clear();
  closed_by_reader_ = error == EPIPE;
  if (error != 0) {
    const bool full = error == ENOSPC || error == EDQUOT;
    status_ = MakeError(full ? ErrorCode::kResourceExhausted : ErrorCode::kIo,
                        "cannot write standard output: {}", std::strerror(error));
  }
  return status_;
}

Output& StandardOutput() {
  static Output output(STDOUT_FILENO);
  return output;
}

void PrintNote(std::string_view line) { WriteAll(STDERR_FILENO, fmt::format("{}\n", line)); }

bool IsTerminal(int descriptor) { return ::isatty(descriptor) == 1; }

bool OutputShowsStyle() {
  const char* no_color = std::getenv("NO_COLOR");
  return IsTerminal(STDOUT_FILENO) && (no_color == nullptr || *no_color == '\0');
}

Result<std::string> ReadStandardInput(size_t max_bytes) {
  std::string text;
  char block[1 << 16];
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return MakeError(ErrorCode::kIo, "cannot read standard input: {}", std::strerror(errno));
    }
    if (n == 0) return text;
    if (static_cast<size_t>(n) > max_bytes - text.size()) {
      return MakeError(ErrorCode::kResourceExhausted,
                       "standard input is longer than the allowed {} bytes", max_bytes);
    }
    try {
      text.append(block, static_cast<size_t>(n));
    } catch (const std::bad_alloc&) {
      return MakeError(ErrorCode::kResourceExhausted,
                       "standard input is longer than memory holds (after {} bytes)", text.size());
    }
  }
}

Status CheckUserFile(const std::filesystem::path& path) {
  DI_RETURN_IF_ERROR(RefuseSpecialFile(path));
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code error;
  if (path.has_filename() && std::filesystem::is_directory(parent, error)) {
    if (::access(parent.c_str(), W_OK | X_OK) == 0) return {};
    return MakeError(ErrorCode::kIo, "cannot write {}: {}", path.string(), std::strerror(errno));
  }
  return MakeError(ErrorCode::kNotFound, "cannot write {}: no folder {}", path.string(),
                   parent.string());
}

Status WriteUserFile(const std::filesystem::path& path, std::string_view contents) {
  DI_RETURN_IF_ERROR(RefuseSpecialFile(path));
  return WriteFileAtomically(path, contents);
}

ProgressFn TerminalProgress() {
  if (!IsTerminal(STDERR_FILENO)) return {};
  using Clock = std::chrono::steady_clock;
  struct Line {
    Clock::time_point next = Clock::now() + std::chrono::milliseconds(300);
    bool drawn = false;
  };
  // Quick work draws nothing; slow work is redrawn ten times a second.
  return [line = std::make_shared<Line>()](std::string_view what, uint64_t done, uint64_t total) {
    if (done >= total) {
      if (line->drawn) WriteAll(STDERR_FILENO, "\r\x1b[K");
      *line = Line{};
      return;
    }
    if (Clock::now() < line->next) return;
    line->next = Clock::now() + std::chrono::milliseconds(100);
    line->drawn = true;
    WriteAll(STDERR_FILENO, fmt::format("\r\x1b[K{}  {} %", what, done * 100 / total));
  };
}

}  // namespace deepinfer::cli
