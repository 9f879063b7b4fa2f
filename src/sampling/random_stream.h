// Counter-based randomness: every number is a pure function of (seed, position, token id), so
// nothing has to be saved, ordered or shared between requests, batches and threads.
// Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (Philox 4x32, 10 rounds);
// spec algorithms section 4.2. All bits are the same on every machine and C library.
#pragma once

#include <array>
#include <cstdint>

namespace deepinfer {

// One Philox 4x32-10 block.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A standard Gumbel variate from 64 uniform bits: -log(-log(1 - u)) with u = (bits + 1/2) / 2^64.
// Small u are the large variates, which decide a draw, and keep full relative precision. Always
// finite: in [-3.9, 45.1].
double GumbelFromBits(uint64_t bits);

// The uniform bits of a vocabulary id at an absolute position of a request. Two neighbouring ids
// share a block.
class RandomStream {
 public:
  RandomStream(uint64_t seed, int64_t position) : seed_(seed), position_(position) {}
  uint64_t Bits(int32_t token) const;
  double Gumbel(int32_t token) const { return GumbelFromBits(Bits(token)); }

 private:
  uint64_t seed_;
  int64_t position_;
};

}  // namespace deepinfer
