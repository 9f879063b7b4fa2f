// Scratch memory of the CPU kernels, one set of buffers a thread.
#pragma once

#include <cstddef>

namespace deepinfer::kernels::cpu {

// At least `bytes` bytes of the calling thread, aligned to 64, contents unspecified, valid until
// the thread's next request for the same slot. Grows, never shrinks. Slots (0 to 7) tell buffers
// apart that are in use together.
void* ScratchBytes(int slot, size_t bytes);

}  // namespace deepinfer::kernels::cpu
