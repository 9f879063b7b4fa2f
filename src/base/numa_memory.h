// Where the pages of a memory range are put on machines with several memory nodes.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "base/topology.h"

namespace deepinfer {

// Spreads the whole pages inside [address, address + bytes) that nobody has touched yet evenly over
// memory nodes (numbers >= 0; by default those of this process's cores), so that threads on all
// nodes together get the bandwidth of all. Does nothing, successfully, where there is one node. For
// anonymous memory: pages of a mapped file go where the thread that first reads them runs, whatever
// is asked here. Only speed depends on it, so an error (the system's, such as a container that
// forbids it) may be ignored.
Status InterleaveOverNodes(void* address, size_t bytes,
                           std::span<const int> nodes = ProcessTopology().nodes);

}  // namespace deepinfer
