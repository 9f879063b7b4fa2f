// The operating system's cache of file pages, for measurements that start without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/file.h"
#include "base/result.h"

namespace deepinfer {

// Asks the system to forget a file's cached pages. Only a hint: pages that a mapping uses or that
// are not on the disk yet stay. Errors: the file cannot be opened or the system refuses.
Status DropCachedPages(const std::filesystem::path& path);

// Bytes of a file that are cached now. Errors: the file cannot be opened or mapped.
Result<uint64_t> CachedBytes(const std::filesystem::path& path);

// `contents` as a mapped file in the folder of temporary files. It has no name, so nothing is left
// behind however the process ends. Errors: no folder, disk full.
Result<MappedFile> MapTemporaryFile(std::span<const std::byte> contents);

}  // namespace deepinfer
