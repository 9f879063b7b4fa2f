#include "base/numa_memory.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <vector>

namespace deepinfer {

Status InterleaveOverNodes(void* address, size_t bytes, std::span<const int> nodes) {
  if (nodes.size() < 2) return {};
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(address);
  const uintptr_t first = (start + page - 1) / page * page;
  const uintptr_t last = (start + bytes) / page * page;
  if (first >= last) return {};
  constexpr size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  std::vector<unsigned long> mask(static_cast<size_t>(std::ranges::max(nodes)) / kBits + 1);
  for (const int node : nodes) mask[static_cast<size_t>(node) / kBits] |= 1UL << node % kBits;
  // The kernel leaves out the last of the bits it is told of.
  if (::syscall(SYS_mbind, first, last - first, MPOL_INTERLEAVE, mask.data(),
                mask.size() * kBits + 1, 0) != 0) {
    return MakeError(ErrorCode::kIo, "interleave {} bytes over {} memory nodes: {}", last - first,
                     nodes.size(), std::strerror(errno));
  }
  return {};
}

}  // namespace deepinfer
