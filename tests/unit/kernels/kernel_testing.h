// What the kernel tests share: seeded inputs, the measure of bf16 distance, and plain restatements
// of the documented summation orders.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/math.h"
#include "base/numeric.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "tests/support/test_kernels.h"

namespace deepinfer::kernels {

// Seeded inputs that are the same on every platform.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint64_t Bits() { return RandomBits(seed_, counter_++); }
  // In [low, high).
  int64_t Below(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Bits() % static_cast<uint64_t>(high - low));
  }
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }
  // Roughly normal, standard deviation 1.
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum;
  }
  std::vector<float> Floats(int64_t count, double scale = 1) {
    std::vector<float> out(count);
    for (float& v : out) v = static_cast<float>(scale * Normal());
    return out;
  }
  std::vector<bf16> Bf16s(int64_t count, double scale = 1) {
    std::vector<bf16> out(count);
    for (bf16& v : out) v = ToBf16(static_cast<float>(scale * Normal()));
    return out;
  }
  std::vector<uint8_t> Bytes(int64_t count) {
    std::vector<uint8_t> out(count);
    for (uint8_t& v : out) v = static_cast<uint8_t>(Bits());
    return out;
  }
  // e4m3 codes without NaN.
  std::vector<uint8_t> E4M3Codes(int64_t count) {
    std::vector<uint8_t> out = Bytes(count);
    for (uint8_t& v : out) v = (v & 0x7f) == 0x7f ? v & 0x80 : v;
    return out;
  }
  // e8m0 scales within 2^-`spread` .. 2^`spread`.
  std::vector<uint8_t> E8M0Scales(int64_t count, int spread = 3) {
    std::vector<uint8_t> out(count);
    for (uint8_t& v : out) v = static_cast<uint8_t>(127 + Below(-spread, spread + 1));
    return out;
  }

 private:
  uint64_t seed_, counter_ = 0;
};

// Distance between neighbouring bf16 values at the magnitude of x.
inline double Bf16Ulp(double x) {
  const int exponent = x == 0 ? -126 : std::max(std::ilogb(x), -126);
  return std::ldexp(1.0, exponent - 7);
}

// How far `got` may be from the exact value when it is a bf16 rounding of an fp32 result with an
// absolute error of at most `fp32_error`.
inline double Bf16Tolerance(double exact, double fp32_error) {
  return 0.5 * Bf16Ulp(std::fabs(exact) + fp32_error) + fp32_error;
}

// The sum order of kernels/reference/reference.h, one addition at a time.
inline float SumInLanes(const std::vector<float>& terms) {
  float lanes[16] = {};
  for (size_t k = 0; k < terms.size(); ++k) lanes[k % 16] += terms[k];
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// Roundings that a value passes through in SumInLanes over `count` terms, times their unit: the
// relative error bound of the sum against the sum of magnitudes.
inline double SumError(int64_t count) {
  return static_cast<double>(CeilDiv(count, 16) + 4) * 0x1p-24;
}

inline std::vector<float> ToFloats(const std::vector<bf16>& x) {
  std::vector<float> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = ToFloat(x[i]);
  return out;
}

inline std::vector<uint16_t> BitsOf(const std::vector<bf16>& x) {
  std::vector<uint16_t> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i].bits;
  return out;
}

// One query's key list as the softmax sees it: for each block of 64 slots the keys of its occupied
// slots, each [dim].
using KeyBlocks = std::vector<std::vector<std::vector<float>>>;

// Attention of one head by the letter of spec model-v41 section 2.5.6, with the sum orders of the
// reference back end: dots in lanes, everything else in ascending order.
inline std::vector<float> AttendByTheLetter(const std::vector<float>& q, const KeyBlocks& blocks,
                                            float sink, float scale) {
  const size_t dim = q.size();
  std::vector<float> acc(dim, 0.0f);
  float top = -1e30f, sum = 0;
  for (const auto& keys : blocks) {
    if (keys.empty()) continue;
    std::vector<float> z;
    float new_top = top;
    for (const std::vector<float>& key : keys) {
      std::vector<float> terms(dim);
      for (size_t d = 0; d < dim; ++d) terms[d] = q[d] * key[d];
      z.push_back(SumInLanes(terms) * scale);
      new_top = std::max(new_top, z.back());
    }
    const float shrink = Exp(top - new_top);
    float block_sum = 0;
    for (float& v : acc) v *= shrink;
    for (size_t n = 0; n < keys.size(); ++n) {
      const float p = Exp(z[n] - new_top);
      block_sum += p;
      for (size_t d = 0; d < dim; ++d) acc[d] += RoundBf16(p) * keys[n][d];
    }
    sum = sum * shrink + block_sum;
    top = new_top;
  }
  const float total = sum + Exp(sink - top);
  for (float& v : acc) v = RoundBf16(v / total);
  return acc;
}

}  // namespace deepinfer::kernels
