// How small a thread's share of a row kernel may be.
#pragma once

#include "kernels/cpu/ops/target.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// Operations on 16 lanes that take about 2 us: a smaller share costs more to hand out than it
// saves.
inline constexpr int64_t kMinShareOperations = 8192;

// The grain of ParallelFor for units of `operations` operations on 16 lanes each.
DEEPINFER_INLINE int64_t Grain(int64_t operations) {
  return Max<int64_t>(1, kMinShareOperations / Max<int64_t>(1, operations));
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
