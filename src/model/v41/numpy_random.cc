#include "model/v41/numpy_random.h"

namespace deepinfer::model::v41 {
namespace {

__extension__ typedef unsigned __int128 Uint128;

constexpr Uint128 kMultiplier =
    (Uint128{2549297995355413924ULL} << 64) | Uint128{4865540595714422341ULL};

// Hash of SeedSequence: mixes the seed's 32-bit words into a pool of four, then expands the pool.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t seed) {
    std::array<uint32_t, 4> entropy = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32), 0, 0};
    uint32_t constant = 0x43b0d7e5u;
    const auto hash = [&constant](uint32_t value) {
      value ^= constant;
      constant *= 0x931e8875u;
      value *= constant;
      return value ^ (value >> 16);
    };
    for (std::size_t i = 0; i < pool_.size(); ++i) pool_[i] = hash(entropy[i]);
    for (std::size_t source = 0; source < pool_.size(); ++source) {
      for (std::size_t target = 0; target < pool_.size(); ++target) {
        if (source == target) continue;
        const uint32_t mixed = 0xca01f9ddu * pool_[target] - 0x4973f715u * hash(pool_[source]);
        pool_[target] = mixed ^ (mixed >> 16);
      }
    }
  }

  template <std::size_t words>
  std::array<uint64_t, words> Generate() const {
    std::array<uint64_t, words> out{};
    uint32_t constant = 0x8b51f9ddu;
    for (std::size_t i = 0; i < 2 * words; ++i) {
      uint32_t value = pool_[i % pool_.size()] ^ constant;
      constant *= 0x58f38dedu;
      value *= constant;
      value ^= value >> 16;
      out[i / 2] |= static_cast<uint64_t>(value) << (i % 2 * 32);
    }
    return out;
  }

 private:
  std::array<uint32_t, 4> pool_{};
};

}  // namespace

NumpyRandom::NumpyRandom(uint64_t seed) {
  const std::array<uint64_t, 4> words = SeedSequence(seed).Generate<4>();
  const Uint128 initial = (Uint128{words[0]} << 64) | words[1];
  const Uint128 sequence = (Uint128{words[2]} << 64) | words[3];
  increment_ = (sequence << 1) | 1;
  state_ = (increment_ + initial) * kMultiplier + increment_;
}

uint64_t NumpyRandom::Next64() {
  state_ = state_ * kMultiplier + increment_;
  const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  const unsigned rotation = static_cast<unsigned>(state_ >> 122);
  return (folded >> rotation) | (folded << ((64 - rotation) & 63));
}

uint64_t NumpyRandom::Below(uint64_t bound) {
  Uint128 product = Uint128{Next64()} * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t threshold = (0 - bound) % bound;
    while (static_cast<uint64_t>(product) < threshold) product = Uint128{Next64()} * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

}  // namespace deepinfer::model::v41
