// Random operands of kernels, and copies of weights that rotate so that no cache holds them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/numeric.h"
#include "base/random.h"
#include "base/thread_pool.h"

namespace deepinfer::bench {

// An array of plain values on a cache line, uninitialised.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t size) : size_(size) {
    const size_t bytes = (static_cast<size_t>(size) * sizeof(T) + 63) / 64 * 64;
    data_.reset(static_cast<T*>(std::aligned_alloc(64, bytes > 0 ? bytes : 64)));
    if (data_ == nullptr) throw std::bad_alloc();
  }
  T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

// Makes operands; large ones repeat a random block, which no kernel notices. The same seed gives
// the same values. Pages are touched first by the pool's threads in their shares.
class InputMaker {
 public:
  InputMaker(ThreadPool& pool, uint64_t seed) : pool_(pool), seed_(seed) {}

  // In [-1, 1).
  Buffer<float> Floats(int64_t count);
  Buffer<bf16> Bf16s(int64_t count);
  // e4m3 codes without NaN; e2m1 codes, two a byte; e8m0 scales from 2^-8 to 2^-5.
  Buffer<uint8_t> E4m3Codes(int64_t count);
  Buffer<uint8_t> E2m1Bytes(int64_t count);
  Buffer<uint8_t> E8m0Scales(int64_t count);
  // e4m3 scales near one half.
  Buffer<uint8_t> E4m3Scales(int64_t count);
  // In [0, limit).
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(RandomBits(seed_, counter_++) % static_cast<uint64_t>(limit));
  }

 private:
  template <typename T, typename Make>
  Buffer<T> Fill(int64_t count, Make&& make);

  ThreadPool& pool_;
  uint64_t seed_;
  uint64_t counter_ = 0;
};

}  // namespace deepinfer::bench
