#include "kernels/reference/exact_dot.h"

#include "kernels/reference/lanes.h"

namespace deepinfer::kernels::reference {
namespace {

template <int rows>
DEEPINFER_INLINE void DotRows(const float* a, const float* b, int64_t dim, int64_t stride,
                              float* dots) {
  Lanes acc[rows] = {};
  for (int64_t k = 0; k < dim; k += kLanes) {
    Lanes ak;
    LoadLanes(a + k, ak);
    for (int i = 0; i < rows; ++i) {
      Lanes bk;
      LoadLanes(b + i * stride + k, bk);
      acc[i] += ak * bk;
    }
  }
  for (int i = 0; i < rows; ++i) dots[i] = SumLanes(acc[i]);
}

}  // namespace

DEEPINFER_MULTIVERSION void ExactDots(const float* a, const float* b, int64_t count, int64_t dim,
                                      int64_t stride, float* dots) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) DotRows<4>(a, b + i * stride, dim, stride, dots + i);
  for (; i < count; ++i) DotRows<1>(a, b + i * stride, dim, stride, dots + i);
}

DEEPINFER_MULTIVERSION void ExactAccumulate(const float* p, const float* v, int64_t count,
                                            int64_t dim, int64_t stride, float* acc) {
  for (int64_t d = 0; d < dim; d += kLanes) {
    Lanes sum;
    LoadLanes(acc + d, sum);
    for (int64_t n = 0; n < count; ++n) {
      Lanes value;
      LoadLanes(v + n * stride + d, value);
      sum += p[n] * value;
    }
    std::memcpy(acc + d, &sum, sizeof(sum));
  }
}

}  // namespace deepinfer::kernels::reference
