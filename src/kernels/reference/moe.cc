// Mixture of experts: routing, activation, combination. Source: spec section 2.6.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/math.h"
#include "kernels/reference/kernels.h"
#include "kernels/reference/lanes.h"

namespace deepinfer::kernels::reference {
namespace {

// sqrt(softplus(x)); double inside, so that very negative logits do not underflow early.
float RouteScore(float logit) {
  const double x = logit;
  const double softplus = std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  return std::sqrt(static_cast<float>(softplus));
}

void GateRow(const GateArgs& args, int64_t r) {
  const bool image = args.is_image != nullptr && args.is_image[r] != 0;
  const float* bias = image && args.image_bias != nullptr ? args.image_bias : args.bias;
  float* scores = args.scores + r * args.experts;
  int32_t* ids = args.ids + r * args.topk;
  float* weights = args.weights + r * args.topk;
  for (int e = 0; e < args.experts; ++e) {
    scores[e] = RouteScore(args.logits[r * args.experts + e]);
  }
  float sum = 0;
  for (int k = 0; k < args.topk; ++k) {
    int best = -1;
    for (int e = 0; e < args.experts; ++e) {
      if (std::find(ids, ids + k, e) != ids + k) continue;
      if (best < 0 || scores[e] + bias[e] > scores[best] + bias[best]) best = e;
    }
    ids[k] = best;
    weights[k] = scores[best];
    sum += scores[best];
  }
  for (int k = 0; k < args.topk; ++k) weights[k] = weights[k] / (sum + 1e-20f) * args.route_scale;
}

DEEPINFER_MULTIVERSION void SwiGluRow(const bf16* a, const bf16* b, float weight, int64_t cols,
                                      float limit, bf16* u) {
  for (int64_t i = 0; i < cols; ++i) {
    const float gate = std::min(ToFloat(a[i]), limit);
    const float up = std::min(std::max(ToFloat(b[i]), -limit), limit);
    u[i] = ToBf16(weight * (gate * Sigmoid(gate) * up));
  }
}

DEEPINFER_MULTIVERSION void AddRow(const bf16* y, int64_t cols, float* acc) {
  for (int64_t i = 0; i < cols; ++i) acc[i] += ToFloat(y[i]);
}

}  // namespace

void Gate(ThreadPool& pool, const GateArgs& args) {
  pool.ParallelFor(args.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) GateRow(args, r);
  });
}

void SwiGluQ8(ThreadPool& pool, const SwiGluArgs& args) {
  std::vector<bf16> own(args.u == nullptr ? args.rows * args.cols : 0);
  bf16* u = args.u == nullptr ? own.data() : args.u;
  const int64_t cols = args.cols;
  pool.ParallelFor(args.rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      SwiGluRow(args.a + r * cols, args.b + r * cols, args.weight == nullptr ? 1 : args.weight[r],
                cols, args.limit, u + r * cols);
    }
  });
  QuantizeQ8(pool, {u, args.rows, cols, cols}, args.out);
}

void Combine(ThreadPool& pool, const CombineArgs& args) {
  pool.ParallelFor(args.rows, 4, [&](int64_t begin, int64_t end, int) {
    float* acc = Scratch(0, args.hidden);
    for (int64_t r = begin; r < end; ++r) {
      std::fill_n(acc, args.hidden, 0.0f);
      for (int64_t i = r * args.topk; i < (r + 1) * args.topk; ++i) {
        AddRow(args.y + args.slots[i] * args.hidden, args.hidden, acc);
      }
      AddRow(args.shared + r * args.hidden, args.hidden, acc);
      for (int64_t d = 0; d < args.hidden; ++d) args.out[r * args.hidden + d] = ToBf16(acc[d]);
    }
  });
}

}  // namespace deepinfer::kernels::reference
