// Derives what each layer does about compressed KV from the lists of the configuration.
#pragma once

#include "base/result.h"
#include "config/model_config.h"

namespace deepinfer {

// Fills `roles` and `decoder_layer`. Needs compress_ratios, the source lists, the candidate
// source, engram_layers and draft_target_layers, each already inside its own range. A layer reads
// the latest source with id <= layer (spec model-v41 section 2.5.1); an arrangement in which some
// layer would find no source, or one of another ratio, is an error naming the layer.
Status AssignLayerRoles(ModelConfig& config);

}  // namespace deepinfer
