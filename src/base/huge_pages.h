// Larger pages for memory that is read in long runs.
#pragma once

#include <cstddef>

namespace deepinfer {

// Asks for huge pages in the whole pages inside [address, address + bytes), before they are first
// touched. Only a hint.
void AdviseHugePages(void* address, size_t bytes);

}  // namespace deepinfer
