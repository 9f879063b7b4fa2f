// Building blocks of the reference kernels: 16-lane sums and per-thread scratch.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/multiversion.h"

namespace deepinfer::kernels::reference {

inline constexpr int64_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(64)));

DEEPINFER_INLINE void LoadLanes(const float* p, Lanes& out) { std::memcpy(&out, p, sizeof(out)); }

// The sum order of reference.h.
DEEPINFER_INLINE float SumLanes(const Lanes& lanes) {
  float t[kLanes];
  std::memcpy(t, &lanes, sizeof(t));
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) t[i] += t[i + width];
  }
  return t[0];
}

// Scratch of the calling thread, at least `count` floats, unspecified contents. Grows, never
// shrinks. `slot` tells buffers apart that are in use together.
inline float* Scratch(int slot, int64_t count) {
  thread_local std::vector<float> buffers[4];
  std::vector<float>& buffer = buffers[slot];
  if (static_cast<int64_t>(buffer.size()) < count) buffer.resize(count);
  return buffer.data();
}

}  // namespace deepinfer::kernels::reference
