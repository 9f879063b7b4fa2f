#include "loader/partial_blob.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace deepinfer {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

tl::unexpected<Error> SystemError(std::string_view what, const std::filesystem::path& path) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return MakeError(full ? ErrorCode::kResourceExhausted : ErrorCode::kIo, "cannot {} {}: {}", what,
                   path.string(), std::strerror(error));
}

}  // namespace

PartialBlob::PartialBlob(std::filesystem::path path, const HubFile& file, int descriptor)
    : path_(std::move(path)), file_(file), descriptor_(descriptor) {}

PartialBlob::PartialBlob(PartialBlob&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      digest_(std::move(other.digest_)) {}

PartialBlob::~PartialBlob() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<PartialBlob> PartialBlob::Open(const std::filesystem::path& path, const HubFile& file) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return SystemError("create", path);
  PartialBlob blob(path, file, descriptor);
  struct stat info{};
  if (::fstat(descriptor, &info) != 0) return SystemError("stat", path);
  blob.size_ = static_cast<uint64_t>(info.st_size);
  if (blob.size_ > file.size) {
    DI_RETURN_IF_ERROR(blob.Restart());
  } else {
    DI_RETURN_IF_ERROR(blob.HashPrefix());
  }
  return blob;
}

Status PartialBlob::HashPrefix() {
  DI_ASSIGN_OR_RETURN(digest_, Digest::Create(file_.digest_kind, file_.size));
  std::vector<std::byte> buffer(std::min<uint64_t>(size_, kReadBytes));
  for (uint64_t done = 0; done < size_;) {
    const size_t want = std::min<uint64_t>(buffer.size(), size_ - done);
    const ssize_t n = ::pread(descriptor_, buffer.data(), want, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read", path_);
    if (n == 0) {
      return MakeError(ErrorCode::kIo, "{} shrank while it was read", path_.string());
    }
    digest_->Update(std::span(buffer).first(static_cast<size_t>(n)));
    done += static_cast<uint64_t>(n);
  }
  return {};
}

Status PartialBlob::Restart() {
  if (size_ > 0 && ::ftruncate(descriptor_, 0) != 0) return SystemError("truncate", path_);
  size_ = 0;
  return HashPrefix();
}

Status PartialBlob::Append(std::span<const std::byte> bytes) {
  if (bytes.size() > file_.size - size_) {
    return MakeError(ErrorCode::kDataLoss, "{}: the server sends more than the {} bytes it listed",
                     file_.name, file_.size);
  }
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      auto error = SystemError("write", path_);
      error.value().message +=
          fmt::format("; {} of {} bytes of {} are kept and the download can be resumed", size_,
                      file_.size, file_.name);
      return error;
    }
    const auto written = static_cast<size_t>(n);
    digest_->Update(bytes.first(written));
    size_ += written;
    bytes = bytes.subspan(written);
  }
  return {};
}

Status PartialBlob::Publish(const std::filesystem::path& blob) {
  if (size_ != file_.size) {
    return MakeError(ErrorCode::kDataLoss, "{} has {} bytes, expected {}", file_.name, size_,
                     file_.size);
  }
  const std::string actual = digest_->Finish();
  if (actual != file_.digest) {
    DI_RETURN_IF_ERROR(Restart());
    return MakeError(ErrorCode::kDataLoss, "{}: {} is {}, expected {}", file_.name,
                     file_.digest_kind == DigestKind::kSha256 ? "SHA-256" : "git blob SHA-1",
                     actual, file_.digest);
  }
  if (::fsync(descriptor_) != 0) return SystemError("sync", path_);
  if (::rename(path_.c_str(), blob.c_str()) != 0) return SystemError("rename", path_);
  return {};
}

}  // namespace deepinfer
