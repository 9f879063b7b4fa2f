// Random tensor contents with the norms of the released weights (spec model-v41 section 8 item 19).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "loader/tensor_contract.h"

namespace deepinfer {

// The contents of one tensor, any part of which can be made alone. Immutable, so several threads
// may fill parts of one tensor.
//
// Weights are normal with a deviation chosen by the tensor's role, cut off at 4.3 deviations.
// Quantised weights draw their codes from that normal rounded to the code grid, and every tile,
// row group or table row has its own power-of-two scale: half, one or two times the mean.
// Sublayers' last projections (wo_b, w2) are smaller than the release's: at full size, random
// sublayers turn a one-ulp difference into other experts a few layers later.
class RandomTensor {
 public:
  // `weight` is the tensor before a ".scale" in contract order (ExpectedTensors), else null.
  // kInternal when no rule covers the tensor's name.
  static Result<RandomTensor> Create(const ExpectedTensor& tensor, const ExpectedTensor* weight,
                                     uint64_t seed);

  // Parts start at multiples of this many bytes.
  static constexpr uint64_t kPartAlignment = 64;
  // Writes bytes [offset, offset + out.size()) of the tensor.
  void Fill(uint64_t offset, std::span<std::byte> out) const;

 private:
  RandomTensor() = default;

  DType dtype_ = DType::kBF16;
  uint64_t key_ = 0;
  float mean_ = 0;
  float deviation_ = 0;
  // mHC's base: `identity_` is added on the diagonal of the square matrix behind the first
  // 2 * identity_width_ values.
  float identity_ = 0;
  int64_t identity_width_ = 0;
  std::vector<uint16_t> codes16_;  // by 16 random bits
  std::vector<uint8_t> codes8_;    // by 16 random bits (FP8) or 8 (FP4)
  uint8_t scale_codes_[4] = {};    // by 2 random bits
};

}  // namespace deepinfer
