#include "model/v41/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace deepinfer::model::v41 {
namespace {

// The rotation index whose wavelength makes `turns` turns over the original context.
double CorrectionDim(double turns, double rope_dim, double theta, double context) {
  return rope_dim * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
}

// Frequencies beyond `high` are divided by the factor, those below `low` stay.
void ApplyYarn(std::vector<float>& frequencies, const RopeScaling& scaling, double theta) {
  const double dim = 2.0 * static_cast<double>(frequencies.size());
  const auto context = static_cast<double>(scaling.original_max_position_embeddings);
  const double low =
      std::max(std::floor(CorrectionDim(scaling.beta_fast, dim, theta, context)), 0.0);
  const double high =
      std::min(std::ceil(CorrectionDim(scaling.beta_slow, dim, theta, context)), dim - 1);
  const float width = static_cast<float>(std::max(high - low, 1e-3));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp =
        std::clamp((static_cast<float>(i) - static_cast<float>(low)) / width, 0.0f, 1.0f);
    frequencies[i] =
        frequencies[i] / static_cast<float>(scaling.factor) * ramp + frequencies[i] * (1.0f - ramp);
  }
}

}  // namespace

RopeTable::RopeTable(const ModelConfig& config, bool compressed) {
  const double theta = compressed ? config.compress_rope_theta : config.rope_theta;
  for (int64_t i = 0; i < config.rope_dim; i += 2) {
    // The power correctly rounded to fp32, then an fp32 reciprocal: one ulp here is 0.02 in the
    // cosine at position 10^6.
    const float exponent = static_cast<float>(i) / static_cast<float>(config.rope_dim);
    const auto power = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    frequencies_.push_back(1.0f / power);
  }
  if (compressed) ApplyYarn(frequencies_, config.rope_scaling, theta);
}

void RopeTable::Fill(std::span<const int64_t> positions, float* cos, float* sin) const {
  for (const int64_t position : positions) {
    for (const float frequency : frequencies_) {
      const auto angle = static_cast<double>(static_cast<float>(position) * frequency);
      *cos++ = static_cast<float>(std::cos(angle));
      *sin++ = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace deepinfer::model::v41
