// Routing of rows to experts. Source: spec model-v41 section 2.6.
#include "base/thread_pool.h"
#include "kernels/cpu/ops/moe.h"
#include "kernels/cpu/ops/shares.h"
#include "kernels/cpu/ops/simd.h"
#include "kernels/cpu/route_score.h"
#include "kernels/cpu/scratch.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

constexpr int kBiasedSlot = 4;
// Scores take the C library's functions, about as long as this many operations on 16 lanes.
constexpr int64_t kScoreOperations = 100;
// Experts whose scores are computed together.
constexpr int64_t kScorePart = 32;

// biased[e] = scores[e] + bias[e], padded to whole lanes with -infinity. Whether no value is NaN.
bool AddBias(const float* scores, const float* bias, int64_t experts, float* biased) {
  uint32_t numbers = 0xffff;
  int64_t e = 0;
  for (; e + kLanes <= experts; e += kLanes) {
    const F32x16 sum = Load(scores + e) + Load(bias + e);
    numbers &= Bits(LessEqual(sum, sum));
    Store(sum, biased + e);
  }
  if (e < experts) {
    Store(Set1(-__builtin_inff()), biased + e);
    const F32x16 sum = LoadFirst(scores + e, experts - e) + LoadFirst(bias + e, experts - e);
    numbers &= Bits(LessEqual(sum, sum));
    StoreFirst(sum, biased + e, experts - e);
  }
  return numbers == 0xffff;
}

// The lowest index of the largest of `count` values (whole lanes); -1 when that is -infinity.
int32_t IndexOfMax(const float* values, int64_t count) {
  F32x16 lanes = Load(values);
  for (int64_t i = kLanes; i < count; i += kLanes) lanes = VMax(lanes, Load(values + i));
  const float max = MaxLanes(lanes);
  if (max == -__builtin_inff()) return -1;
  for (int64_t i = 0; i < count; i += kLanes) {
    const uint32_t at = Bits(LessEqual(Set1(max), Load(values + i)));
    if (at != 0) return static_cast<int32_t>(i + __builtin_ctz(at));
  }
  return -1;
}

// The same by the letter, for values among which are NaN or that are used up: the first expert not
// among the `taken` stays until another is larger.
int32_t IndexOfMaxByLetter(const GateArgs& args, const float* scores, const float* bias,
                           const int32_t* ids, int taken) {
  int32_t best = -1;
  for (int32_t e = 0; e < args.experts; ++e) {
    bool used = false;
    for (int k = 0; k < taken; ++k) used = used || ids[k] == e;
    if (used) continue;
    if (best < 0 || scores[e] + bias[e] > scores[best] + bias[best]) best = e;
  }
  return best;
}

void ChooseExperts(const GateArgs& args, int64_t r) {
  const bool image = args.is_image != nullptr && args.is_image[r] != 0;
  const float* bias = image && args.image_bias != nullptr ? args.image_bias : args.bias;
  const float* scores = args.scores + r * args.experts;
  int32_t* ids = args.ids + r * args.topk;
  float* weights = args.weights + r * args.topk;
  const int64_t padded = (args.experts + kLanes - 1) / kLanes * kLanes;
  auto* biased = static_cast<float*>(ScratchBytes(kBiasedSlot, padded * sizeof(float)));
  const bool numbers = AddBias(scores, bias, args.experts, biased);
  float sum = 0;
  for (int k = 0; k < args.topk; ++k) {
    int32_t best = numbers ? IndexOfMax(biased, padded) : -1;
    if (best < 0) best = IndexOfMaxByLetter(args, scores, bias, ids, k);
    biased[best] = -__builtin_inff();
    ids[k] = best;
    weights[k] = scores[best];
    sum += scores[best];
  }
  for (int k = 0; k < args.topk; ++k) weights[k] = weights[k] / (sum + 1e-20f) * args.route_scale;
}

}  // namespace

void Gate(ThreadPool& pool, const GateArgs& args) {
  const int64_t experts = args.experts;
  if (args.rows >= pool.size()) {
    pool.ParallelFor(args.rows, Grain(experts * kScoreOperations),
                     [&](int64_t begin, int64_t end, int) {
                       RouteScores(args.logits + begin * experts, (end - begin) * experts,
                                   args.scores + begin * experts);
                       for (int64_t r = begin; r < end; ++r) ChooseExperts(args, r);
                     });
    return;
  }
  // Few rows: the scores are the work.
  const int64_t count = args.rows * experts, parts = (count + kScorePart - 1) / kScorePart;
  pool.ParallelFor(
      parts, Grain(kScorePart * kScoreOperations), [&](int64_t begin, int64_t end, int) {
        const int64_t first = begin * kScorePart;
        RouteScores(args.logits + first, Min(count, end * kScorePart) - first, args.scores + first);
      });
  for (int64_t r = 0; r < args.rows; ++r) ChooseExperts(args, r);
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
