// One row of logits, its maxima and the order of its tokens: the words the sampling code shares.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/math.h"
#include "base/multiversion.h"
#include "sampling/elementary.h"

namespace deepinfer {

// Tokens a block of a row holds; the last block may be shorter.
inline constexpr int kBlockTokens = 64;

// A row without NaN and +infinity that has a finite logit. Borrows everything.
struct RowView {
  std::span<const float> logits;
  std::span<const float> block_max;  // the largest logit of each block
  float max = 0;
  int32_t max_token = 0;  // the lowest id with the largest logit
};

struct Candidate {
  float logit;
  int32_t token;
};

// The total order of preference: larger logit first, then lower id.
constexpr bool Before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// Every filter keeps a prefix of that order: the tokens up to and including `last`.
struct Cut {
  // Keeps every finite logit.
  Candidate last = {std::numeric_limits<float>::lowest(), std::numeric_limits<int32_t>::max()};
  bool Keeps(const Candidate& c) const { return !Before(last, c); }
};

// Logits relative to the best one and divided by the temperature.
struct Scale {
  double max = 0;
  double inverse_temperature = 1;

  // Monotone in `logit`, 0 for the best one, -infinity for -infinity.
  DEEPINFER_INLINE double Scaled(float logit) const {
    return (static_cast<double>(logit) - max) * inverse_temperature;
  }
  // e^Scaled in fp32: the probability relative to the best token's.
  DEEPINFER_INLINE float Weight(float logit) const {
    return Exp(static_cast<float>(Scaled(logit)));
  }
  // The weight in units of 2^-40, rounded to nearest even. Sums of masses are sums of integers, so
  // they are the same in any order; a row of 2^23 tokens cannot overflow.
  DEEPINFER_INLINE uint64_t Mass(float logit) const { return MassOfWeight(Weight(logit)); }
  static DEEPINFER_INLINE uint64_t MassOfWeight(float weight) {
    // Adding 2^52 leaves the integer in the low bits of the fraction.
    const double shifted = static_cast<double>(weight) * 0x1p40 + 0x1p52;
    return std::bit_cast<uint64_t>(shifted) - std::bit_cast<uint64_t>(0x1p52);
  }
};

// Scaled logits below this have mass 0.
inline constexpr double kNoMass = -29;

// log of a sum of masses, relative to the best token's weight. `mass` > 0.
inline double LogMass(uint64_t mass) { return LogDouble(static_cast<double>(mass) * 0x1p-40); }

// Scratch memory of the functions over rows. Grows to the vocabulary and stays.
struct RowScratch {
  std::vector<float> block_max;
  std::vector<float> block_order;
  std::vector<Candidate> candidates;
};

}  // namespace deepinfer
