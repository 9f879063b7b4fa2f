// Counter-based randomness: every number is a pure function of (seed, position, stream, token id),
// so nothing has to be saved, ordered or shared between requests, batches and threads.
// Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (Philox 4x32, 10 rounds);
// spec algorithms section 4.2. All bits are the same on every machine and C library.
#pragma once

#include <array>
#include <cstdint>

namespace deepinfer {

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9u;
inline constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

// One Philox 4x32-10 block.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A standard Gumbel variate from 64 uniform bits: -log(-log(1 - u)) with u = (bits + 1/2) / 2^64.
// Small u are the large variates, which decide a draw, and keep full relative precision. Always
// finite: in [-3.9, kMaxGumbel].
double GumbelFromBits(uint64_t bits);
inline constexpr double kMaxGumbel = 45.1;

// Independent streams of one request. Under the ratio test a proposal, its test and the residual
// draw must not share noise; under coupled acceptance the draft draws from kTarget on purpose.
enum class Stream : uint32_t { kTarget = 0, kDraft = 1, kAccept = 2, kResidual = 3 };

// The numbers of one stream at one absolute position of a request. Two neighbouring ids share a
// Philox block with counter (id / 2, stream, position low, position high) and the seed as key.
class RandomStream {
 public:
  RandomStream(uint64_t seed, int64_t position, Stream stream = Stream::kTarget)
      : seed_(seed), position_(static_cast<uint64_t>(position)), stream_(stream) {}

  // The uniform bits of a vocabulary id.
  uint64_t Bits(int32_t token) const;
  double Gumbel(int32_t token) const { return GumbelFromBits(Bits(token)); }
  // One number in (0, 1] for the whole position.
  double Uniform() const;

  // Counter (first word 0) and key of the blocks.
  std::array<uint32_t, 4> counter() const;
  std::array<uint32_t, 2> key() const;

 private:
  uint64_t seed_;
  uint64_t position_;
  Stream stream_;
};

// The seed of choice `choice` (from 0) of a request with n > 1. Choice 0 keeps the seed, so it is
// what the same request with n = 1 gives; every other is Philox of (choice, seed), and does not
// depend on n.
uint64_t ChildSeed(uint64_t seed, int64_t choice);

}  // namespace deepinfer
