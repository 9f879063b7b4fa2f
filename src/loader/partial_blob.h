// A blob on its way into the cache: an ".incomplete" file that grows, is checked and gets its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "base/result.h"
#include "loader/digest.h"
#include "loader/hub_listing.h"

namespace deepinfer {

// Whatever is killed in between, the file holds a prefix of the blob or fails the checksum; only a
// blob that passed it ever bears its final name. One writer at a time (callers hold the blob's
// FileLock). Keeps the file open; bytes written stay on disk when the object dies.
class PartialBlob {
 public:
  // Opens or creates the file and hashes the prefix it already holds.
  static Result<PartialBlob> Open(const std::filesystem::path& path, const HubFile& file);
  PartialBlob(PartialBlob&& other) noexcept;
  PartialBlob& operator=(PartialBlob&&) = delete;
  ~PartialBlob();

  uint64_t size() const { return size_; }
  // Forgets all bytes.
  Status Restart();
  // kDataLoss when the blob would outgrow its listed size; kResourceExhausted on a full disk.
  Status Append(std::span<const std::byte> bytes);
  // Checks size and digest, syncs, and renames to `blob`. A digest mismatch is kDataLoss and
  // forgets all bytes; otherwise the object is only good for destruction afterwards.
  Status Publish(const std::filesystem::path& blob);

 private:
  PartialBlob(std::filesystem::path path, const HubFile& file, int descriptor);
  Status HashPrefix();

  std::filesystem::path path_;
  HubFile file_;
  int descriptor_;
  uint64_t size_ = 0;
  std::optional<Digest> digest_;
};

}  // namespace deepinfer
