#include "kernels/cpu/route_score.h"

#include <algorithm>
#include <cmath>

namespace deepinfer::kernels::cpu {

void RouteScores(const float* logits, int64_t count, float* scores) {
  for (int64_t i = 0; i < count; ++i) {
    const double x = logits[i];
    const double softplus = std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    scores[i] = std::sqrt(static_cast<float>(softplus));
  }
}

}  // namespace deepinfer::kernels::cpu
