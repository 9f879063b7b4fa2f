#include "kernels/cpu/scratch.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

namespace deepinfer::kernels::cpu {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
struct Buffer {
  std::unique_ptr<void, Free> data;
  size_t bytes = 0;
};

}  // namespace

void* ScratchBytes(int slot, size_t bytes) {
  thread_local std::array<Buffer, 8> buffers;
  Buffer& buffer = buffers[static_cast<size_t>(slot)];
  if (buffer.bytes < bytes) {
    const size_t rounded = (bytes + 63) / 64 * 64;
    void* data = std::aligned_alloc(64, rounded);
    if (data == nullptr) throw std::bad_alloc();
    buffer.data.reset(data);
    buffer.bytes = rounded;
  }
  return buffer.data.get();
}

}  // namespace deepinfer::kernels::cpu
