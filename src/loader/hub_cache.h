// The Hugging Face cache on disk: hub/models--ORG--NAME/{blobs, refs, snapshots/COMMIT/FILE}, where
// the files of a snapshot are relative links to blobs named by their digest.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace deepinfer {

inline constexpr std::string_view kDefaultRepository = "deepseek-ai/DeepSeek-V4.1-Flash-1017";

// Value of an environment variable; empty when it is unset. A variable set to the empty string
// counts as unset everywhere in the loader.
using EnvironmentFn = std::function<std::optional<std::string>(std::string_view name)>;

// Reads the environment of this process.
EnvironmentFn ProcessEnvironment();
// The variable's value, or empty when it is unset or blank.
std::optional<std::string> NonEmptyVariable(const EnvironmentFn& environment,
                                            std::string_view name);

// The hub folder: HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else
// HOME/.cache/huggingface/hub. It need not exist. kNotFound when none of these is set.
Result<std::filesystem::path> HubCacheFolder(const EnvironmentFn& environment);

// True for "org/name" of letters, digits, '-', '_' and '.', neither part starting with '.'.
bool IsRepositoryId(std::string_view text);

// One repository inside a hub folder. Only computes paths; nothing need exist.
struct HubRepository {
  std::filesystem::path hub;
  std::string id;  // "org/name", must satisfy IsRepositoryId

  std::filesystem::path folder() const;
  std::filesystem::path blob(std::string_view digest) const;
  std::filesystem::path partial_blob(std::string_view digest) const;
  std::filesystem::path lock(std::string_view digest) const;
  std::filesystem::path snapshot(std::string_view commit) const;
  std::filesystem::path reference(std::string_view revision) const;
};

// Points snapshots/COMMIT/NAME at blobs/DIGEST with a relative link, replacing whatever stands
// there in one step. `name` must be a safe relative path.
Status LinkIntoSnapshot(const HubRepository& repository, std::string_view commit,
                        const std::string& name, std::string_view digest);

// An exclusive lock on a file, held until destruction. The operating system drops it when the
// process dies, so a stale lock file never blocks anybody.
class FileLock {
 public:
  // Waits for other holders, asking `give_up` ten times a second; when it says true the result is
  // kCancelled. Creates the file and its folders.
  static Result<FileLock> Acquire(const std::filesystem::path& path,
                                  const std::function<bool()>& give_up);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace deepinfer
