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
  const int64_t length = state.length_ + tokens;
  for (size_t i = 0; i < state.kv_sources_.size(); ++i) {
    KvSourceState& source = state.kv_sources_[i];
    const int64_t first = source.kv.size();
    const int64_t entries = length / config.roles[config.kv_source_layers[i]].ratio;
    source.kv.Grow(entries);
    source.index_keys.Grow(entries);
    for (int64_t e = first; e < entries; ++e) {
      make.KvRecord(source.kv.entry(e), config.head_dim);
      make.IndexRecord(source.index_keys.entry(e), config.index_head_dim);
    }
    std::ranges::generate(source.tail, [&] { return make.Value(); });
  }
  const auto fill_rings = [&](std::vector<WindowRing>& rings) {
    for (WindowRing& ring : rings) {
      for (int64_t p = std::max(state.length_, length - ring.slots); p < length; ++p) {
        make.WindowRecord(ring.records.data() + p % ring.slots * ring.entry_bytes, config.head_dim);
      }
    }
  };
  fill_rings(state.windows_);
  fill_rings(state.draft_rings_);
  const auto ids = static_cast<uint64_t>(std::max<int64_t>(1, config.engram_compressed_vocab_size));
  std::ranges::generate(state.engram_history_,
                        [&] { return static_cast<int32_t>(make.Bits() % ids); });
  state.length_ = length;
}

}  // namespace deepinfer::model::v41
