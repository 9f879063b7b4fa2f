#include "sampling/random_stream.h"

#include <cmath>

namespace deepinfer {
namespace {

// log((1 + s) / (1 - s)) for |s| <= 0.172 by its odd series: only IEEE operations. Relative error
// below 1e-15.
double LogFromRatio(double s) {
  const double s2 = s * s;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
  return 2.0 * s * sum;
}

// Natural logarithm of a positive normal number.
double Log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  return LogFromRatio((m - 1) / (m + 1)) + exponent * 0.69314718055994531;
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

double GumbelFromBits(uint64_t bits) {
  const double u = (static_cast<double>(bits) + 0.5) * 0x1p-64;
  if (u < 0.25) return -Log(-LogFromRatio(-u / (2 - u)));
  // 1 - u, exact to 2^-64 also where u itself rounds to 1.
  const double rest = (static_cast<double>(~bits) + 0.5) * 0x1p-64;
  return -Log(-Log(rest));
}

uint64_t RandomStream::Bits(int32_t token) const {
  const uint32_t id = static_cast<uint32_t>(token);
  const uint64_t position = static_cast<uint64_t>(position_);
  // The second word numbers independent streams of one request; 0 draws target tokens.
  const auto words = Philox4x32(
      {id >> 1, 0, static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32)},
      {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  const unsigned pair = (id & 1u) * 2;
  return uint64_t{words[pair]} << 32 | words[pair + 1];
}

}  // namespace deepinfer
