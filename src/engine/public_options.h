// What the public EngineOptions hides.
#pragma once

#include "config/options.h"
#include "deepinfer/options.h"

namespace deepinfer {

struct EngineOptions::State {
  Options values;
};

}  // namespace deepinfer
