#include "sampling/random_stream.h"

#include "sampling/elementary.h"

namespace deepinfer {
namespace {

// The second counter word of child seeds: apart from every Stream.
constexpr uint32_t kChildSeedWord = 0x80000000u;

constexpr uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
constexpr uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t a = uint64_t{kPhiloxMultiplier0} * counter[0];
    const uint64_t b = uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {High(b) ^ counter[1] ^ key[0], Low(b), High(a) ^ counter[3] ^ key[1], Low(a)};
    key[0] += kPhiloxWeyl0;
    key[1] += kPhiloxWeyl1;
  }
  return counter;
}

double GumbelFromBits(uint64_t bits) {
  const double u = (static_cast<double>(bits) + 0.5) * 0x1p-64;
  if (u < 0.25) return -LogDouble(-LogFromRatio(-u / (2 - u)));
  // 1 - u, exact to 2^-64 also where u itself rounds to 1.
  const double rest = (static_cast<double>(~bits) + 0.5) * 0x1p-64;
  return -LogDouble(-LogDouble(rest));
}

std::array<uint32_t, 4> RandomStream::counter() const {
  return {0, static_cast<uint32_t>(stream_), Low(position_), High(position_)};
}

std::array<uint32_t, 2> RandomStream::key() const { return {Low(seed_), High(seed_)}; }

uint64_t RandomStream::Bits(int32_t token) const {
  const uint32_t id = static_cast<uint32_t>(token);
  std::array<uint32_t, 4> block = counter();
  block[0] = id >> 1;
  const auto words = Philox4x32(block, key());
  const unsigned pair = (id & 1u) * 2;
  return uint64_t{words[pair]} << 32 | words[pair + 1];
}

double RandomStream::Uniform() const { return (static_cast<double>(Bits(0)) + 0.5) * 0x1p-64; }

uint64_t ChildSeed(uint64_t seed, int64_t choice) {
  if (choice == 0) return seed;
  const uint64_t number = static_cast<uint64_t>(choice);
  const auto words =
      Philox4x32({Low(number), kChildSeedWord, High(number), 0}, {Low(seed), High(seed)});
  return uint64_t{words[0]} << 32 | words[1];
}

}  // namespace deepinfer
