// Built-in configurations for checkpoints made on this machine.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace deepinfer {

// The config.json text of preset "release", "mid" or "tiny" (see CheckpointDesign).
Result<std::string> PresetConfig(std::string_view preset);

}  // namespace deepinfer
