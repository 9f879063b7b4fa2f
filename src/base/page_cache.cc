#include "base/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace deepinfer {
namespace {

Status WriteAll(int fd, std::span<const std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), size_t{1} << 26));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const bool full = errno == ENOSPC || errno == EDQUOT;
      return MakeError(full ? ErrorCode::kResourceExhausted : ErrorCode::kIo,
                       "cannot write a temporary file in {}: {}", name, std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Status DropCachedPages(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    return MakeError(ErrorCode::kIo, "cannot open {}: {}", path.string(), std::strerror(errno));
  }
  const int error = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (error == 0) return {};
  return MakeError(ErrorCode::kIo, "cannot drop the cached pages of {}: {}", path.string(),
                   std::strerror(error));
}

Result<uint64_t> CachedBytes(const std::filesystem::path& path) {
  DI_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const std::span<const std::byte> bytes = file.bytes();
  std::vector<unsigned char> resident((bytes.size() + page - 1) / page);
  if (!bytes.empty() &&
      ::mincore(const_cast<std::byte*>(bytes.data()), bytes.size(), resident.data()) != 0) {
    return MakeError(ErrorCode::kIo, "the system does not tell which pages of {} are cached: {}",
                     path.string(), std::strerror(errno));
  }
  const auto pages = std::ranges::count_if(resident, [](unsigned char p) { return (p & 1) != 0; });
  return std::min<uint64_t>(static_cast<uint64_t>(pages) * page, bytes.size());
}

Result<MappedFile> MapTemporaryFile(std::span<const std::byte> contents) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) {
    return MakeError(ErrorCode::kNotFound, "no folder for temporary files: {}", error.message());
  }
  std::string name = (folder / "deepinfer-XXXXXX").string();
  const Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) {
    return MakeError(ErrorCode::kIo, "cannot make a temporary file in {}: {}", folder.string(),
                     std::strerror(errno));
  }
  ::unlink(name.c_str());
  DI_RETURN_IF_ERROR(WriteAll(file.get(), contents, folder.string()));
  // On the disk before it is measured, so that writing back does not run beside the measurement.
  ::fsync(file.get());
  return MappedFile::Open("/proc/self/fd/" + std::to_string(file.get()));
}

}  // namespace deepinfer
