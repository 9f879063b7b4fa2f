// models/nano, loaded once a program, and prompts for it.
#pragma once

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <vector>

#include "engine/runtime.h"
#include "tests/support/test_kernels.h"

namespace deepinfer::golden {

inline const Runtime& Nano() {
  static const std::shared_ptr<const Runtime> runtime = [] {
    auto loaded = Runtime::Load(std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano",
                                {CheckWeights::kNone, kernels::TestTarget()});
    if (!loaded) throw std::runtime_error(loaded.error().message);
    return *loaded;
  }();
  return *runtime;
}

// Random tokens; from 300 on longer than the window, the selection list and the candidate blocks of
// nano.
inline std::vector<int32_t> LongPrompt(int64_t length, int seed) {
  std::vector<int32_t> tokens = {0};
  uint32_t x = static_cast<uint32_t>(seed) * 2654435761u + 1;
  while (std::ssize(tokens) < length) {
    x = x * 1664525u + 1013904223u;
    tokens.push_back(static_cast<int32_t>(260 + (x >> 8) % 7000));
  }
  return tokens;
}

}  // namespace deepinfer::golden
