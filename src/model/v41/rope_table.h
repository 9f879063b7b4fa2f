// Rotary frequencies of one layer kind. Source: spec model-v41 section 2.5.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/model_config.h"

namespace deepinfer::model::v41 {

// Immutable, thread-safe.
class RopeTable {
 public:
  // Ratio-0 layers and draft stages: rope_theta, plain. Others: compress_rope_theta with YaRN.
  RopeTable(const ModelConfig& config, bool compressed);

  // cos and sin [positions, rope_dim / 2] fp32, of the fp32 angle position * frequency.
  void Fill(std::span<const int64_t> positions, float* cos, float* sin) const;

 private:
  std::vector<float> frequencies_;
};

}  // namespace deepinfer::model::v41
