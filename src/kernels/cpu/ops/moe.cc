// Mixture of experts: activation and combination. Source: spec model-v41 section 2.6.
#include "kernels/cpu/ops/moe.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/q8.h"
#include "kernels/cpu/ops/shares.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

// u of 16 elements, rounded to bf16.
DEEPINFER_INLINE F32x16 Activation(const bf16* a, const bf16* b, F32x16 weight, float limit) {
  const F32x16 gate = VMin(Set1(limit), LoadBf16(a));
  const F32x16 up = VMin(Set1(limit), VMax(Set1(-limit), LoadBf16(b)));
  const F32x16 sigmoid = Set1(1.0f) / (Set1(1.0f) + Exp(Zero() - gate));
  return RoundBf16(weight * (gate * sigmoid * up));
}

// Columns [begin, end) of row r.
void CombineRow(const CombineArgs& args, int64_t r, int64_t begin, int64_t end) {
  const int32_t* slots = args.slots + r * args.topk;
  const bf16* shared = args.shared + r * args.hidden;
  bf16* out = args.out + r * args.hidden;
  int64_t d = begin;
  for (; d + kLanes <= end; d += kLanes) {
    F32x16 sum = Zero();
    for (int64_t i = 0; i < args.topk; ++i) {
      sum = sum + LoadBf16(args.y + slots[i] * args.hidden + d);
    }
    StoreBf16(sum + LoadBf16(shared + d), out + d);
  }
  if (d < end) {
    F32x16 sum = Zero();
    for (int64_t i = 0; i < args.topk; ++i) {
      sum = sum + LoadBf16First(args.y + slots[i] * args.hidden + d, end - d);
    }
    StoreBf16First(sum + LoadBf16First(shared + d, end - d), out + d, end - d);
  }
}

}  // namespace

void SwiGluQ8(ThreadPool& pool, const SwiGluArgs& args) {
  // Groups of all rows, one after the other.
  const int64_t groups = args.cols / kGroup;
  pool.ParallelFor(args.rows * groups, Grain(128), [&](int64_t begin, int64_t end, int) {
    for (int64_t g = begin; g < end; ++g) {
      const F32x16 weight = Set1(args.weight == nullptr ? 1.0f : args.weight[g / groups]);
      const bf16* a = args.a + g * kGroup;
      const bf16* b = args.b + g * kGroup;
      const F32x16 lo = Activation(a, b, weight, args.limit);
      const F32x16 hi = Activation(a + kLanes, b + kLanes, weight, args.limit);
      if (args.u != nullptr) {
        StoreBf16(lo, args.u + g * kGroup);
        StoreBf16(hi, args.u + g * kGroup + kLanes);
      }
      QuantizeQ8Group(lo, hi, args.out.codes + g * kGroup, args.out.scales + g);
    }
  });
}

void Combine(ThreadPool& pool, const CombineArgs& args) {
  ForParts(pool, args.rows, args.hidden, 2 * args.topk + 8,
           [&](int64_t r, int64_t begin, int64_t end) { CombineRow(args, r, begin, end); });
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
