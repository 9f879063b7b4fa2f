// The file seam: every read and write of the file system below the command line goes through here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace deepinfer {

// A whole file in memory, read-only: mapped, or read into memory of its own. Movable; the bytes
// live as long as the object. Thread-safe for reading.
class MappedFile {
 public:
  // Maps: pages load on first touch. Refuses anything but a regular file. An empty file gives an
  // empty span.
  static Result<MappedFile> Open(const std::filesystem::path& path);
  // Reads with `threads` threads into anonymous memory on huge pages, spread over the memory nodes,
  // and lets the system forget the file's cached pages, so that memory holds the bytes once. For
  // large files that are read again and again: translating addresses costs next to nothing, and a
  // change of the file does no harm. `progress` is called with the bytes done, on this thread.
  // Errors: as Open; not enough memory; a file that shrinks meanwhile.
  static Result<MappedFile> Load(const std::filesystem::path& path, int threads,
                                 const std::function<void(uint64_t done)>& progress = {});
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }
  // `range` (inside bytes()) will be touched here and there: no read-ahead. Only a hint.
  void AdviseRandomAccess(std::span<const std::byte> range) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The whole of a small file. Files above max_bytes are refused.
Result<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 30);

// Writes a temporary file beside `path`, syncs it and renames it over `path`: after a kill at any
// instant `path` holds the old or the new contents, whole. A full disk is an error and leaves the
// old file as it was; so is a target that exists and is not a regular file.
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view contents);

}  // namespace deepinfer
