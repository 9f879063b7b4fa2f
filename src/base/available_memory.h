// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace deepinfer {

// What the system counts as available (free, or reclaimable without swapping), within what the
// process's control group has left (version 2, as mounted in a container). `root` replaces / in
// tests. Errors: the system does not tell.
Result<uint64_t> AvailableMemoryBytes(const std::filesystem::path& root = "/");

}  // namespace deepinfer
