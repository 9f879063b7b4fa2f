// What of this process's memory is resident now, by where the pages come from.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace deepinfer {

struct ResidentMemory {
  uint64_t anonymous = 0;    // heap, stacks: bytes that exist in memory alone
  uint64_t file_backed = 0;  // mapped files: bytes the system can drop and read again
};

// Errors: the system does not tell (no Linux /proc).
Result<ResidentMemory> ReadResidentMemory();

}  // namespace deepinfer
