#include "loader/hub_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

std::string FolderName(std::string_view id) {
  const size_t slash = id.find('/');
  return fmt::format("models--{}--{}", id.substr(0, slash), id.substr(slash + 1));
}

bool IsIdPart(std::string_view part) {
  if (part.empty() || part.size() > 96 || part.front() == '.') return false;
  for (const char c : part) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (!allowed) return false;
  }
  return true;
}

}  // namespace

EnvironmentFn ProcessEnvironment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

std::optional<std::string> NonEmptyVariable(const EnvironmentFn& environment,
                                            std::string_view name) {
  if (!environment) return std::nullopt;
  std::optional<std::string> value = environment(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

Result<fs::path> HubCacheFolder(const EnvironmentFn& environment) {
  if (const auto hub = NonEmptyVariable(environment, "HF_HUB_CACHE")) return fs::path(*hub);
  if (const auto home = NonEmptyVariable(environment, "HF_HOME")) return fs::path(*home) / "hub";
  if (const auto cache = NonEmptyVariable(environment, "XDG_CACHE_HOME")) {
    return fs::path(*cache) / "huggingface" / "hub";
  }
  if (const auto home = NonEmptyVariable(environment, "HOME")) {
    return fs::path(*home) / ".cache" / "huggingface" / "hub";
  }
  return MakeError(ErrorCode::kNotFound,
                   "no Hugging Face cache: none of HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME "
                   "is set");
}

bool IsRepositoryId(std::string_view text) {
  const size_t slash = text.find('/');
  return slash != std::string_view::npos && IsIdPart(text.substr(0, slash)) &&
         IsIdPart(text.substr(slash + 1));
}

fs::path HubRepository::folder() const { return hub / FolderName(id); }
fs::path HubRepository::blob(std::string_view digest) const { return folder() / "blobs" / digest; }
fs::path HubRepository::partial_blob(std::string_view digest) const {
  return folder() / "blobs" / (std::string(digest) + ".incomplete");
}
fs::path HubRepository::lock(std::string_view digest) const {
  return hub / ".locks" / FolderName(id) / (std::string(digest) + ".lock");
}
fs::path HubRepository::snapshot(std::string_view commit) const {
  return folder() / "snapshots" / commit;
}
fs::path HubRepository::reference(std::string_view revision) const {
  return folder() / "refs" / revision;
}

Status LinkIntoSnapshot(const HubRepository& repository, std::string_view commit,
                        const std::string& name, std::string_view digest) {
  const fs::path link = repository.snapshot(commit) / name;
  fs::path target = fs::path("..") / "..";
  for (const char c : name) {
    if (c == '/') target /= "..";
  }
  target = target / "blobs" / digest;

  std::error_code error;
  if (fs::is_symlink(link, error) && fs::read_symlink(link, error) == target) return {};
  fs::create_directories(link.parent_path(), error);
  if (error) {
    return MakeError(ErrorCode::kIo, "cannot create folder {}: {}", link.parent_path().string(),
                     error.message());
  }
  const fs::path temporary = fmt::format("{}.{}.link", link.string(), ::getpid());
  fs::remove(temporary, error);
  fs::create_symlink(target, temporary, error);
  if (!error) fs::rename(temporary, link, error);
  if (error) {
    const std::string reason = error.message();
    fs::remove(temporary, error);
    return MakeError(ErrorCode::kIo, "cannot link {}: {}", link.string(), reason);
  }
  return {};
}

Result<FileLock> FileLock::Acquire(const fs::path& path, const std::function<bool()>& give_up) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    return MakeError(ErrorCode::kIo, "cannot create folder {}: {}", path.parent_path().string(),
                     error.message());
  }
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return MakeError(ErrorCode::kIo, "cannot create lock file {}: {}", path.string(),
                     std::strerror(errno));
  }
  FileLock lock(descriptor);
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return MakeError(ErrorCode::kIo, "cannot lock {}: {}", path.string(), std::strerror(errno));
    }
    if (give_up && give_up()) {
      return MakeError(ErrorCode::kCancelled, "gave up waiting for the lock {}", path.string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace deepinfer
