#include "model/v41/synthetic_context.h"

#include <algorithm>

#include "base/random.h"
#include "kernels/kernel_table.h"

namespace deepinfer::model::v41 {
namespace {

// Scales that put the largest code of a group at a magnitude of about 2 to 4, as in a normalised
// row: e4m3 0.375 to 0.6875 and e8m0 2^-1 for e2m1 codes (up to 6), e8m0 2^-7 for e4m3 (up to 448).
constexpr uint8_t kFirstE4m3Scale = 0x2c, kE4m3Scales = 8;
constexpr uint8_t kE8m0ScaleOfE2m1 = 126, kE8m0ScaleOfE4m3 = 120;

class RecordMaker {
 public:
  explicit RecordMaker(uint64_t key) : key_(key) {}

  uint64_t Bits() { return RandomBits(key_, counter_++); }

  // Any bits are e2m1 codes.
  void KvRecord(uint8_t* out, int64_t dim) {
    Bytes(out, dim / 2);
    for (int64_t i = 0; i < dim / kernels::kKvGroup; ++i) {
      out[dim / 2 + i] = static_cast<uint8_t>(kFirstE4m3Scale + Bits() % kE4m3Scales);
    }
  }
  void IndexRecord(uint8_t* out, int64_t dim) {
    Bytes(out, dim / 2);
    std::fill_n(out + dim / 2, dim / kernels::kGroup, kE8m0ScaleOfE2m1);
  }
  void WindowRecord(uint8_t* out, int64_t dim) {
    Bytes(out, dim);
    for (int64_t i = 0; i < dim; ++i) {
      if ((out[i] & 0x7f) == 0x7f) out[i] ^= 1;  // NaN
    }
    std::fill_n(out + dim, dim / kernels::kGroup, kE8m0ScaleOfE4m3);
  }
  float Value() { return static_cast<float>(static_cast<double>(Bits() >> 11) * 0x1p-52 - 1.0); }

 private:
  void Bytes(uint8_t* out, int64_t count) {
    uint64_t bits = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (i % 8 == 0) bits = Bits();
      out[i] = static_cast<uint8_t>(bits >> (i % 8 * 8));
    }
  }

  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace

void SyntheticContext::Extend(const ModelConfig& config, int64_t tokens, uint64_t seed,
                              SequenceState& state) {
  if (tokens == 0) return;
  RecordMaker make(RandomKey(seed, "synthetic context"));
  const CacheLayout& layout = state.layout();
  const int64_t start = state.length(), length = start + tokens;
  state.Reserve(length);
  for (int64_t source = 0; source < std::ssize(layout.sources); ++source) {
    const int ratio = layout.sources[source].ratio;
    for (int64_t e = start / ratio; e < length / ratio; ++e) {
      make.KvRecord(state.KvEntry(source, e), config.head_dim);
      make.IndexRecord(state.IndexKey(source, e), config.index_head_dim);
    }
    if (ratio != 2) continue;
    const int64_t values = layout.tail_slots * 2 * layout.head_dim;
    std::generate_n(state.Tail(source, 0), values, [&] { return make.Value(); });
  }
  for (int64_t ring = 0; ring < layout.num_layers + layout.num_draft_stages; ++ring) {
    for (int64_t p = std::max(start, length - layout.ring_slots); p < length; ++p) {
      make.WindowRecord(state.WindowRecord(ring, p), config.head_dim);
    }
  }
  const auto ids = static_cast<uint64_t>(std::max<int64_t>(1, config.engram_compressed_vocab_size));
  for (int64_t p = std::max(start, length - layout.history_slots); p < length; ++p) {
    state.History(p) = static_cast<int32_t>(make.Bits() % ids);
  }
  state.Advance(length);
}

}  // namespace deepinfer::model::v41
