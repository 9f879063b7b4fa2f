#include "loader/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/numeric.h"
#include "base/random.h"
#include "tensor/weight_scale.h"

namespace deepinfer {
namespace {

constexpr int kQuantiles = 65536;

// Standard normal quantiles of (i + 0.5) / 65536, scaled to a variance of exactly one.
std::vector<float> MakeQuantiles() {
  std::vector<double> z(kQuantiles);
  double x = -4.3;
  double squares = 0;
  for (int i = 0; i < kQuantiles / 2; ++i) {
    const double target = (i + 0.5) / kQuantiles;
    // Newton's method on the distribution function, from the neighbour's solution.
    for (int step = 0; step < 6; ++step) {
      const double density = std::exp(-0.5 * x * x) * 0.39894228040143268;
      x -= (0.5 * std::erfc(-x * 0.70710678118654752) - target) / density;
    }
    z[i] = x;
    z[kQuantiles - 1 - i] = -x;
    squares += 2 * x * x;
  }
  const double scale = std::sqrt(kQuantiles / squares);
  std::vector<float> out(kQuantiles);
  std::transform(z.begin(), z.end(), out.begin(),
                 [&](double value) { return static_cast<float>(value * scale); });
  return out;
}

const std::vector<float>& Quantiles() {
  static const std::vector<float> quantiles = MakeQuantiles();
  return quantiles;
}

struct Rule {
  std::string_view suffix;
  float mean;
  float deviation;  // of each value, or of a row's sum over unit inputs when by_fan_in
  bool by_fan_in;
  float identity = 0;
};

// The first match counts.
constexpr Rule kRules[] = {
    {".engram.embed", 0, 0.15f, false},
    {".markov_head.embed", 0, 1, false},
    {"embed", 0, 0.12f, false},
    {".markov_head.head", 0, 1.5f, true},
    {"head", 0, 3, true},
    {".confidence_head.proj", 0, 2, true},
    {".compressor.wkv", 0, 1.8f, true},
    {".compressor.wgate", 0, 40, true},
    {".compressor.norm", 0.6f, 0.06f, false},
    {".indexer.wk", 0, 1, true},
    {".indexer.k_norm", 0.5f, 0.05f, false},
    {".indexer.wq_b", 0, 0.95f, true},
    {".indexer.weights_proj", 0, 8, true},
    {".engram.wkv", 0, 1, true},
    {".engram.q_weight", 1, 0.1f, false},
    {".engram.k_weight", 1, 0.1f, false},
    {".attn.attn_sink", 0, 0.5f, false},
    {".attn.wq_a", 0, 1.6f, true},
    {".attn.wq_b", 0, 0.95f, true},
    {".attn.wkv", 0, 1.8f, true},
    {".attn.wo_a", 0, 1.6f, true},
    {".attn.wo_b", 0, 0.06f, true},
    {".attn.q_norm", 0.97f, 0.097f, false},
    {".attn.kv_norm", 0.4f, 0.04f, false},
    {".attn_norm", 0.025f, 0.0025f, false},
    {".ffn_norm", 0.2f, 0.02f, false},
    {".main_norm", 1, 0.1f, false},
    {"norm", 1, 0.1f, false},
    {".ffn.gate", 0, 2.9f, true},
    {".ffn.gate.bias", 0, 0.2f, false},
    {".ffn.gate.bias_vl", 0, 0.4f, false},
    {".w1", 0, 1.5f, true},
    {".w2", 0, 0.15f, true},
    {".w3", 0, 1.5f, true},
    {".main_proj", 0, 1, true},
    {"_fn", 0, 1, true},
    {"_base", 0, 0.5f, false, 1.5f},
    {"_scale", 0.7f, 0.2f, false},
};

const Rule* FindRule(std::string_view name) {
  for (const std::string_view ending : {".weight", ".scale"}) {
    if (name.ends_with(ending)) {
      name.remove_suffix(ending.size());
      break;
    }
  }
  for (const Rule& rule : kRules) {
    if (name.ends_with(rule.suffix)) return &rule;
  }
  return nullptr;
}

// Root mean square of the scales' factors 1/2, 1, 1, 2.
constexpr float kScaleSpread = 1.25f;
// Deviations in code units at which 1024 values of an FP8 tile (up to 448) and 32 values of an FP4
// group (up to 6) fill the grid as an absolute-maximum quantiser would.
constexpr float kFp8CodeDeviation = 105;
constexpr float kFp4CodeDeviation = 1.75f;

// Splits a deviation into code units and a power-of-two scale.
struct CodeScale {
  float code_deviation;
  int exponent;
};
CodeScale SplitDeviation(float deviation, DType dtype) {
  const float wanted = dtype == DType::kI8 ? kFp4CodeDeviation : kFp8CodeDeviation;
  const float mean_scale = deviation / kScaleSpread;
  const int exponent = static_cast<int>(std::lround(std::log2(mean_scale / wanted)));
  return {std::ldexp(mean_scale, -exponent), exponent};
}

template <typename Code, int kBits>
void FillCodes(uint64_t key, uint64_t first, const std::vector<Code>& table, Code* out,
               size_t count) {
  constexpr int kPerWord = 64 / kBits;
  uint64_t word = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t index = first + i;
    if (i == 0 || index % kPerWord == 0) word = RandomBits(key, index / kPerWord);
    out[i] = table[(word >> (index % kPerWord * kBits)) & ((1u << kBits) - 1)];
  }
}

}  // namespace

Result<RandomTensor> RandomTensor::Create(const ExpectedTensor& tensor,
                                          const ExpectedTensor* weight, uint64_t seed) {
  const Rule* rule = FindRule(tensor.name);
  const bool is_scale = tensor.dtype == DType::kF8E8M0;
  if (rule == nullptr || is_scale != (weight != nullptr)) {
    return MakeError(ErrorCode::kInternal, "no rule makes random values for tensor {} ({})",
                     tensor.name, DTypeName(tensor.dtype));
  }
  const ExpectedTensor& values = is_scale ? *weight : tensor;
  RandomTensor out;
  out.dtype_ = tensor.dtype;
  out.key_ = RandomKey(seed, tensor.name);
  out.mean_ = rule->mean;
  out.deviation_ = rule->deviation;
  if (rule->by_fan_in) {
    const int64_t fan_in = values.shape.back() * (values.dtype == DType::kI8 ? 2 : 1);
    out.deviation_ /= std::sqrt(static_cast<float>(fan_in));
  }
  if (rule->identity != 0) {
    // (2 + n) * n values: 2n for the pre and post mixes, then an n x n matrix.
    out.identity_ = rule->identity;
    while ((2 + out.identity_width_) * out.identity_width_ < tensor.shape[0]) {
      ++out.identity_width_;
    }
  }
  const std::vector<float>& z = Quantiles();
  const CodeScale scale = SplitDeviation(out.deviation_, values.dtype);
  switch (tensor.dtype) {
    case DType::kBF16:
      for (const float value : z) {
        out.codes16_.push_back(ToBf16(out.mean_ + out.deviation_ * value).bits);
      }
      break;
    case DType::kF8E4M3:
      for (const float value : z) {
        out.codes8_.push_back(FloatToE4M3(value * scale.code_deviation));
      }
      break;
    case DType::kI8:
      for (int i = 0; i < 256; ++i) {
        out.codes8_.push_back(FloatToE2M1(z[i * 256 + 128] * scale.code_deviation));
      }
      break;
    case DType::kF8E8M0:
      for (int i = 0; i < 4; ++i) {
        constexpr int kSteps[4] = {-1, 0, 0, 1};
        out.scale_codes_[i] = static_cast<uint8_t>(
            std::clamp<int>(127 + scale.exponent + kSteps[i], kMinWeightScale, kMaxWeightScale));
      }
      break;
    case DType::kF32:
      break;
    default:
      return MakeError(ErrorCode::kInternal, "no rule makes random {} values for tensor {}",
                       DTypeName(tensor.dtype), tensor.name);
  }
  return out;
}

void RandomTensor::Fill(uint64_t offset, std::span<std::byte> out) const {
  switch (dtype_) {
    case DType::kBF16:
      FillCodes<uint16_t, 16>(key_, offset / 2, codes16_, reinterpret_cast<uint16_t*>(out.data()),
                              out.size() / 2);
      break;
    case DType::kF8E4M3:
      FillCodes<uint8_t, 16>(key_, offset, codes8_, reinterpret_cast<uint8_t*>(out.data()),
                             out.size());
      break;
    case DType::kI8: {
      // Two 4-bit codes a byte, each from 8 random bits.
      for (size_t i = 0; i < out.size(); i += 4) {
        const uint64_t word = RandomBits(key_, (offset + i) / 4);
        const size_t count = std::min<size_t>(4, out.size() - i);
        for (size_t j = 0; j < count; ++j) {
          const unsigned pair = static_cast<unsigned>(word >> (16 * j)) & 0xffffu;
          out[i + j] = static_cast<std::byte>(codes8_[pair & 0xff] | (codes8_[pair >> 8] << 4));
        }
      }
      break;
    }
    case DType::kF8E8M0:
      for (size_t i = 0; i < out.size(); ++i) {
        const uint64_t index = offset + i;
        const uint64_t word = RandomBits(key_, index / 32);
        out[i] = static_cast<std::byte>(scale_codes_[(word >> (index % 32 * 2)) & 3]);
      }
      break;
    default: {
      const std::vector<float>& z = Quantiles();
      for (size_t i = 0; i < out.size() / 4; ++i) {
        const uint64_t index = offset / 4 + i;
        const uint64_t word = RandomBits(key_, index / 4) >> (index % 4 * 16);
        float value = mean_ + deviation_ * z[word & 0xffff];
        const int64_t matrix = static_cast<int64_t>(index) - 2 * identity_width_;
        if (identity_width_ > 0 && matrix >= 0 && matrix % (identity_width_ + 1) == 0) {
          value += identity_;
        }
        std::memcpy(out.data() + i * 4, &value, 4);
      }
    }
  }
}

}  // namespace deepinfer
