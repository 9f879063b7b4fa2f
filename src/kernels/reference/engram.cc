// Engram: table rows and the gated addition to the streams. Source: spec section 2.4.
#include <cmath>

#include "base/math.h"
#include "kernels/reference/decode.h"
#include "kernels/reference/kernels.h"
#include "kernels/reference/reductions.h"

namespace deepinfer::kernels::reference {
namespace {

constexpr float kMinAbsDot = 1e-6f;

struct StreamDots {
  float dot, h_squares, key_squares;
};

DEEPINFER_MULTIVERSION StreamDots DotStream(const bf16* h, const bf16* key, const bf16* q_weight,
                                            const bf16* k_weight, int64_t hidden) {
  StreamDots out;
  out.dot = SumRow(hidden, [=](int64_t d) {
    return ToFloat(h[d]) * (ToFloat(q_weight[d]) * ToFloat(k_weight[d])) * ToFloat(key[d]);
  });
  out.h_squares = SumSquares(h, hidden);
  out.key_squares = SumSquares(key, hidden);
  return out;
}

float StreamGate(const StreamDots& dots, int64_t hidden, float eps) {
  const float n = static_cast<float>(hidden);
  const float h_norm = 1.0f / std::sqrt(dots.h_squares / n + eps);
  const float key_norm = 1.0f / std::sqrt(dots.key_squares / n + eps);
  const float factor = static_cast<float>(std::pow(static_cast<double>(hidden), -0.5));
  const float dot = dots.dot * (h_norm * key_norm) * factor;
  return Sigmoid(std::copysign(std::sqrt(std::max(std::fabs(dot), kMinAbsDot)), dot));
}

DEEPINFER_MULTIVERSION void AddGated(const bf16* value, float gate, int64_t hidden, bf16* h) {
  for (int64_t d = 0; d < hidden; ++d) h[d] = ToBf16(ToFloat(h[d]) + gate * ToFloat(value[d]));
}

}  // namespace

void EngramGather(ThreadPool& pool, const EngramGatherArgs& args) {
  pool.ParallelFor(args.rows, 1, [&](int64_t begin, int64_t end, int) {
    float* values = Scratch(0, args.dim);
    for (int64_t i = begin * args.columns; i < end * args.columns; ++i) {
      const int64_t row = args.row_ids[i];
      DecodeE4M3(args.codes + row * args.dim, args.scales + row * (args.dim / kGroup), args.dim,
                 values);
      for (int64_t d = 0; d < args.dim; ++d) args.out[i * args.dim + d] = ToBf16(values[d]);
    }
  });
}

void EngramMix(ThreadPool& pool, const EngramMixArgs& args) {
  const int64_t hidden = args.hidden;
  pool.ParallelFor(args.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      if (args.dead != nullptr && args.dead[r] != 0) continue;
      const bf16* keys = args.kv + r * (args.streams + 1) * hidden;
      const bf16* value = keys + args.streams * hidden;
      for (int s = 0; s < args.streams; ++s) {
        bf16* h = args.h + (r * args.streams + s) * hidden;
        const StreamDots dots = DotStream(h, keys + s * hidden, args.q_weight + s * hidden,
                                          args.k_weight + s * hidden, hidden);
        AddGated(value, StreamGate(dots, hidden, args.norm_eps), hidden, h);
      }
    }
  });
}

}  // namespace deepinfer::kernels::reference
