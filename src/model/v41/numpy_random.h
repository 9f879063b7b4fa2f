// The part of numpy's generator that the checkpoint's Engram constants come from:
// default_rng(seed).integers(0, bound) for 64-bit integers, i.e. SeedSequence, PCG64 (XSL-RR
// 128/64) and Lemire's bounded draw. Source: numpy's documented algorithms; spec model-v41
// section 2.4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace deepinfer::model::v41 {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint64_t seed);

  uint64_t Next64();
  // Uniform in [0, bound), bound > 2^32: numpy draws smaller ranges from another stream.
  uint64_t Below(uint64_t bound);

 private:
  __extension__ typedef unsigned __int128 Uint128;
  Uint128 state_ = 0;
  Uint128 increment_ = 0;
};

}  // namespace deepinfer::model::v41
