// A sequence state as a long prompt would leave it in size and form, with random contents: for
// measuring at context depths that a real prefill would take hours to reach. No model output that
// matters may come from it.
#pragma once

#include <cstdint>

#include "config/model_config.h"
#include "model/v41/sequence_state.h"

namespace deepinfer::model::v41 {

class SyntheticContext {
 public:
  // Appends `tokens` (>= 0) tokens to a state of the same configuration with blocks of its own.
  // Every cache gets as many records as a prefill with all layers would write; they are valid, of
  // the magnitudes of normalised rows, and depend on the seed alone. Selection lists over them are
  // scattered over the whole context, as those of unrelated text would be.
  static void Extend(const ModelConfig& config, int64_t tokens, uint64_t seed,
                     SequenceState& state);
};

}  // namespace deepinfer::model::v41
