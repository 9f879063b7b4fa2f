#include "base/slab.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/huge_pages.h"
#include "base/numa_memory.h"

namespace deepinfer {
namespace {
constexpr int64_t kAlignment = 64;
}

Result<Slab> Slab::Create(int64_t count, int64_t piece_bytes) {
  if (count < 0 || piece_bytes < 1 ||
      piece_bytes > std::numeric_limits<int64_t>::max() - kAlignment) {
    return MakeError(ErrorCode::kInvalidArgument, "{} pieces of {} bytes are no slab", count,
                     piece_bytes);
  }
  const int64_t stride = (piece_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (count > std::numeric_limits<int64_t>::max() / stride) {
    return MakeError(ErrorCode::kResourceExhausted, "{} pieces of {} bytes are too many", count,
                     stride);
  }
  if (count == 0) return Slab(nullptr, 0, stride);
  const auto bytes = static_cast<size_t>(count * stride);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return MakeError(ErrorCode::kResourceExhausted, "no memory for {} pieces of {} bytes: {}",
                     count, stride, std::strerror(errno));
  }
  AdviseHugePages(data, bytes);
  // Where that is forbidden the pages go to the node of who touches them first.
  (void)InterleaveOverNodes(data, bytes);
  return Slab(static_cast<uint8_t*>(data), count, stride);
}

Slab& Slab::operator=(Slab&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(count_, other.count_);
  std::swap(stride_, other.stride_);
  return *this;
}

Slab::~Slab() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes()));
}

}  // namespace deepinfer
