// A fixed number of equally large pieces of memory, found by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"

namespace deepinfer {

// The memory behind a pool of ids. Pieces start at multiples of 64 bytes and never move; they are
// zero at first and take no memory before they are written. Spread over all memory nodes.
// Move-only.
class Slab {
 public:
  // count >= 0 pieces of piece_bytes >= 1, which is rounded up to a multiple of 64. Errors: the
  // system does not give that much address space.
  static Result<Slab> Create(int64_t count, int64_t piece_bytes);
  Slab(Slab&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        count_(std::exchange(other.count_, 0)),
        stride_(other.stride_) {}
  Slab& operator=(Slab&& other) noexcept;
  ~Slab();

  int64_t count() const { return count_; }
  int64_t bytes() const { return count_ * stride_; }
  // 0 <= i < count()
  uint8_t* operator[](int64_t i) const { return data_ + i * stride_; }

 private:
  Slab(uint8_t* data, int64_t count, int64_t stride)
      : data_(data), count_(count), stride_(stride) {}

  uint8_t* data_;
  int64_t count_;
  int64_t stride_;
};

}  // namespace deepinfer
