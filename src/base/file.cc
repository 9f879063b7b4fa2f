#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/descriptor.h"
#include "base/huge_pages.h"
#include "base/numa_memory.h"
#include "base/thread_pool.h"

namespace deepinfer {
namespace {

ErrorCode CodeOf(int system_error) {
  switch (system_error) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ErrorCode::kResourceExhausted;
    default:
      return ErrorCode::kIo;
  }
}

tl::unexpected<Error> SystemError(std::string_view what, const std::filesystem::path& path) {
  const int error = errno;
  return MakeError(CodeOf(error), "cannot {} {}: {}", what, path.string(), std::strerror(error));
}

// Opens a regular file for reading and gives its size.
Result<std::pair<int, size_t>> OpenRegular(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError("open", path);
  struct stat info{};
  if (::fstat(fd, &info) != 0) {
    const auto error = SystemError("stat", path);
    ::close(fd);
    return error;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return MakeError(ErrorCode::kInvalidArgument, "{} is {}, not a regular file", path.string(),
                     S_ISDIR(info.st_mode) ? "a folder" : "a special file");
  }
  return std::pair<int, size_t>(fd, static_cast<size_t>(info.st_size));
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  DI_ASSIGN_OR_RETURN(const auto opened, OpenRegular(path));
  const Descriptor file(opened.first);
  MappedFile mapped;
  mapped.path_ = path;
  mapped.size_ = opened.second;
  if (mapped.size_ > 0) {
    void* data = ::mmap(nullptr, mapped.size_, PROT_READ, MAP_SHARED, file.get(), 0);
    if (data == MAP_FAILED) return SystemError("map", path);
    mapped.data_ = static_cast<const std::byte*>(data);
  }
  return mapped;
}

namespace {

// Bytes read between two calls of `progress`, and by one call of the system.
constexpr size_t kRoundBytes = size_t{256} << 20, kReadBytes = size_t{8} << 20;

// Reads [begin, end) to the same place of `data`; the position of the first byte that failed, or
// end.
size_t ReadRange(int fd, size_t begin, size_t end, std::byte* data) {
  while (begin < end) {
    const ssize_t n = ::pread(fd, data + begin, end - begin, static_cast<off_t>(begin));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    begin += static_cast<size_t>(n);
  }
  return begin;
}

}  // namespace

Result<MappedFile> MappedFile::Load(const std::filesystem::path& path, int threads,
                                    const std::function<void(uint64_t done)>& progress) {
  DI_ASSIGN_OR_RETURN(const auto opened, OpenRegular(path));
  const Descriptor file(opened.first);
  MappedFile loaded;
  loaded.path_ = path;
  if (opened.second == 0) return loaded;
  void* memory =
      ::mmap(nullptr, opened.second, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return SystemError("find memory for", path);
  loaded.data_ = static_cast<const std::byte*>(memory);
  loaded.size_ = opened.second;
  AdviseHugePages(memory, loaded.size_);
  static_cast<void>(InterleaveOverNodes(memory, loaded.size_));  // only speed depends on it
  auto* data = static_cast<std::byte*>(memory);
  ThreadPool pool(threads);
  std::atomic<bool> failed{false};
  for (size_t round = 0; round < loaded.size_; round += kRoundBytes) {
    const size_t bytes = std::min(kRoundBytes, loaded.size_ - round);
    const auto parts = static_cast<int64_t>((bytes + kReadBytes - 1) / kReadBytes);
    pool.ParallelFor(parts, 1, [&](int64_t begin, int64_t end, int) {
      const size_t from = round + static_cast<size_t>(begin) * kReadBytes;
      const size_t to = std::min(round + bytes, round + static_cast<size_t>(end) * kReadBytes);
      if (ReadRange(file.get(), from, to, data) != to) failed.store(true);
    });
    if (failed.load()) {
      return MakeError(ErrorCode::kIo, "cannot read {}: it ends before byte {}, or its disk failed",
                       path.string(), round + bytes);
    }
    ::posix_fadvise(file.get(), static_cast<off_t>(round), static_cast<off_t>(bytes),
                    POSIX_FADV_DONTNEED);
    if (progress) progress(round + bytes);
  }
  ::mprotect(memory, loaded.size_, PROT_READ);
  return loaded;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::AdviseRandomAccess(std::span<const std::byte> range) const {
  // The call wants whole pages; the neighbours that share a border page do not mind.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(range.data()) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(range.data()) + range.size();
  if (!range.empty()) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_RANDOM);
}

Result<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes) {
  DI_ASSIGN_OR_RETURN(const auto opened, OpenRegular(path));
  const Descriptor file(opened.first);
  if (opened.second > max_bytes) {
    return MakeError(ErrorCode::kInvalidArgument, "{} has {} bytes; at most {} are allowed",
                     path.string(), opened.second, max_bytes);
  }
  std::string contents(opened.second, '\0');
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = ::read(file.get(), contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read", path);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  contents.resize(done);
  return contents;
}

Status WriteFileAtomically(const std::filesystem::path& path, std::string_view contents) {
  // Renaming over a device or a pipe would replace it by a file.
  struct stat target{};
  if (::stat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode)) {
    return MakeError(ErrorCode::kInvalidArgument, "{} is {}, not a regular file", path.string(),
                     S_ISDIR(target.st_mode) ? "a folder" : "a special file");
  }
  std::string temporary = path.string() + ".XXXXXX";
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return SystemError("create", path);
  const auto fail = [&](std::string_view what) {
    auto error = SystemError(what, path);
    ::unlink(temporary.c_str());
    return error;
  };
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = ::write(file.get(), contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail("write");
    done += static_cast<size_t>(n);
  }
  if (::fchmod(file.get(), 0644) != 0 || ::fsync(file.get()) != 0) return fail("sync");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail("rename onto");
  return {};
}

}  // namespace deepinfer
