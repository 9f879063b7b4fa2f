// Sums over one row in the order of reference.h, for rows whose products are not exact: compiled
// without contraction.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/reference/lanes.h"

namespace deepinfer::kernels::reference {

// Sum over i of term(i), i in [0, count).
template <typename Term>
DEEPINFER_INLINE float SumRow(int64_t count, Term term) {
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
  }
  for (; i < count; ++i) lanes[i % kLanes] += term(i);
  for (int width = 8; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  }
  return lanes[0];
}

DEEPINFER_INLINE float SumSquares(const bf16* x, int64_t count) {
  return SumRow(count, [x](int64_t i) {
    const float v = ToFloat(x[i]);
    return v * v;
  });
}

}  // namespace deepinfer::kernels::reference
