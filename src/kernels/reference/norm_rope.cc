// RMSNorm and rotary embedding. Sources: spec sections 2.0, 2.5.2.
#include <cmath>

#include "kernels/reference/decode.h"
#include "kernels/reference/kernels.h"
#include "kernels/reference/lanes.h"
#include "kernels/reference/reductions.h"

namespace deepinfer::kernels::reference {
namespace {

DEEPINFER_MULTIVERSION void RmsNormRow(const bf16* x, const bf16* weight, int64_t cols, float eps,
                                       bf16* y) {
  const float mean = SumSquares(x, cols) / static_cast<float>(cols);
  const float r = 1.0f / std::sqrt(mean + eps);
  for (int64_t i = 0; i < cols; ++i) y[i] = ToBf16(ToFloat(weight[i]) * (ToFloat(x[i]) * r));
}

DEEPINFER_MULTIVERSION void RopeHeads(bf16* x, int64_t heads, int64_t dim, int64_t rope_dim,
                                      const float* cos, const float* sin, float sign) {
  for (int64_t h = 0; h < heads; ++h) {
    bf16* pair = x + h * dim + dim - rope_dim;
    for (int64_t i = 0; i < rope_dim / 2; ++i) {
      const float a = ToFloat(pair[2 * i]), b = ToFloat(pair[2 * i + 1]), s = sign * sin[i];
      pair[2 * i] = ToBf16(a * cos[i] - b * s);
      pair[2 * i + 1] = ToBf16(a * s + b * cos[i]);
    }
  }
}

}  // namespace

void RmsNorm(ThreadPool& pool, const RowsView& x, const bf16* weight, float eps, bf16* y) {
  pool.ParallelFor(x.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      RmsNormRow(x.values + r * x.stride, weight, x.cols, eps, y + r * x.cols);
    }
  });
}

void Rope(ThreadPool& pool, bf16* x, int64_t rows, int64_t heads, int64_t dim, int64_t rope_dim,
          const float* cos, const float* sin, bool inverse) {
  pool.ParallelFor(rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      RopeHeads(x + r * heads * dim, heads, dim, rope_dim, cos + r * rope_dim / 2,
                sin + r * rope_dim / 2, inverse ? -1.0f : 1.0f);
    }
  });
}

}  // namespace deepinfer::kernels::reference
