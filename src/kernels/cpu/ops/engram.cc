// Engram: table rows and the gated addition to the streams. Source: spec model-v41 section 2.4.
#include "kernels/cpu/ops/engram.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/row_sums.h"
#include "kernels/cpu/ops/shares.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

// Table rows requested from memory ahead of their use. They lie anywhere in a table of gigabytes.
constexpr int64_t kAhead = 8;
constexpr int64_t kCacheLine = 64;
// What a row that no cache holds costs, in operations on 16 lanes.
constexpr int64_t kMissOperations = 200;

void PrefetchRow(const EngramGatherArgs& args, int64_t row) {
  const uint8_t* codes = args.codes + row * args.dim;
  for (int64_t i = 0; i < args.dim; i += kCacheLine) __builtin_prefetch(codes + i);
  __builtin_prefetch(args.scales + row * (args.dim / kGroup));
}

void DecodeRow(const EngramGatherArgs& args, int64_t row, bf16* out) {
  const uint8_t* codes = args.codes + row * args.dim;
  const uint8_t* scales = args.scales + row * (args.dim / kGroup);
  for (int64_t d = 0; d < args.dim; d += kGroup) {
    const F32x16 scale = Set1(ScaleOf(scales[d / kGroup]));
    StoreBf16(LoadE4m3(codes + d) * scale, out + d);
    StoreBf16(LoadE4m3(codes + d + kLanes) * scale, out + d + kLanes);
  }
}

struct StreamDots {
  float dot, h_squares, key_squares;
};

StreamDots DotStream(const bf16* h, const bf16* key, const bf16* q_weight, const bf16* k_weight,
                     int64_t hidden) {
  F32x16 dot = Zero(), h_squares = Zero(), key_squares = Zero();
  const auto step = [&](F32x16 hd, F32x16 kd, F32x16 q, F32x16 k) DEEPINFER_INLINE_LAMBDA {
    // The last product is not exact.
    dot = dot + hd * (q * k) * kd;
    h_squares = MulAdd(hd, hd, h_squares);
    key_squares = MulAdd(kd, kd, key_squares);
  };
  int64_t d = 0;
  for (; d + kLanes <= hidden; d += kLanes) {
    step(LoadBf16(h + d), LoadBf16(key + d), LoadBf16(q_weight + d), LoadBf16(k_weight + d));
  }
  if (d < hidden) {
    const int64_t n = hidden - d;
    step(LoadBf16First(h + d, n), LoadBf16First(key + d, n), LoadBf16First(q_weight + d, n),
         LoadBf16First(k_weight + d, n));
  }
  return {SumLanes(dot), SumLanes(h_squares), SumLanes(key_squares)};
}

// `factor`: hidden^-0.5.
float StreamGate(const StreamDots& dots, int64_t hidden, float factor, float eps) {
  constexpr float kMinAbsDot = 1e-6f;
  const float h_norm = InverseNorm(dots.h_squares, hidden, eps);
  const float key_norm = InverseNorm(dots.key_squares, hidden, eps);
  const float dot = dots.dot * (h_norm * key_norm) * factor;
  const float root = __builtin_sqrtf(Max(__builtin_fabsf(dot), kMinAbsDot));
  float gate[kLanes];
  Store(Set1(1.0f) / (Set1(1.0f) + Exp(Set1(-__builtin_copysignf(root, dot)))), gate);
  return gate[0];
}

void AddGated(const bf16* value, float gate, int64_t hidden, bf16* h) {
  const F32x16 g = Set1(gate);
  int64_t d = 0;
  for (; d + kLanes <= hidden; d += kLanes) {
    StoreBf16(LoadBf16(h + d) + g * LoadBf16(value + d), h + d);
  }
  if (d < hidden) {
    const int64_t n = hidden - d;
    StoreBf16First(LoadBf16First(h + d, n) + g * LoadBf16First(value + d, n), h + d, n);
  }
}

}  // namespace

void EngramGather(ThreadPool& pool, const EngramGatherArgs& args) {
  const int64_t count = args.rows * args.columns;
  pool.ParallelFor(count, Grain(kMissOperations), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < Min(end, begin + kAhead); ++i) PrefetchRow(args, args.row_ids[i]);
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) PrefetchRow(args, args.row_ids[i + kAhead]);
      DecodeRow(args, args.row_ids[i], args.out + i * args.dim);
    }
  });
}

void EngramMix(ThreadPool& pool, const EngramMixArgs& args) {
  const int64_t hidden = args.hidden, streams = args.streams;
  const auto factor = static_cast<float>(__builtin_pow(static_cast<double>(hidden), -0.5));
  const int64_t operations = (hidden / kLanes + 1) * 24;
  pool.ParallelFor(args.rows * streams, Grain(operations), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i / streams, s = i % streams;
      if (args.dead != nullptr && args.dead[r] != 0) continue;
      const bf16* keys = args.kv + r * (streams + 1) * hidden;
      bf16* h = args.h + i * hidden;
      const StreamDots dots = DotStream(h, keys + s * hidden, args.q_weight + s * hidden,
                                        args.k_weight + s * hidden, hidden);
      const float gate = StreamGate(dots, hidden, factor, args.norm_eps);
      AddGated(keys + streams * hidden, gate, hidden, h);
    }
  });
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
