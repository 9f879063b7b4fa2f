// Core attention over window and selected compressed entries, with a sink in the denominator.
// Source: spec section 2.5.6.
#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "kernels/reference/decode.h"
#include "kernels/reference/exact_dot.h"
#include "kernels/reference/kernels.h"
#include "kernels/reference/lanes.h"

namespace deepinfer::kernels::reference {
namespace {

// Heads of one query handled by one unit of work: enough to reuse the expanded keys, few enough
// that one query still spreads over the threads.
constexpr int64_t kHeadsPerUnit = 4;
constexpr float kFirstMax = -1e30f;

DEEPINFER_MULTIVERSION void DecodeWindowRecord(const uint8_t* record, int64_t dim, float* out) {
  DecodeE4M3(record, record + dim, dim, out);
}

DEEPINFER_MULTIVERSION void DecodeKvRecord(const uint8_t* record, int64_t dim, float* out) {
  const uint8_t* scales = record + dim / 2;
  DecodeE2M1<kKvGroup>(record, dim, [scales](int64_t g) { return E4M3Value(scales[g]); }, out);
}

// Running softmax state of one head.
struct Head {
  float max = kFirstMax;
  float sum = 0;
};

// One block of scores: rescales acc, turns z into the bf16 probabilities that enter the PV product
// and adds the unrounded ones to the sum.
DEEPINFER_MULTIVERSION void SoftmaxBlock(float* z, int64_t count, float scale, Head& head,
                                         float* acc, int64_t dim) {
  float top = head.max;
  for (int64_t n = 0; n < count; ++n) {
    z[n] *= scale;
    top = std::max(top, z[n]);
  }
  const float shrink = Exp(head.max - top);
  float sum = 0;
  for (int64_t n = 0; n < count; ++n) {
    const float p = Exp(z[n] - top);
    z[n] = p;
  }
  for (int64_t n = 0; n < count; ++n) {
    sum += z[n];
    z[n] = RoundBf16(z[n]);
  }
  head.sum = head.sum * shrink + sum;
  head.max = top;
  for (int64_t d = 0; d < dim; ++d) acc[d] *= shrink;
}

// The keys of slots [begin, end) of a list, empty slots left out.
int64_t DecodeBlock(const AttentionQuery& list, int64_t dim, int64_t stride, int64_t begin,
                    int64_t end, float* keys) {
  int64_t count = 0;
  const int64_t window = list.window_end - list.window_begin;
  for (int64_t slot = begin; slot < end; ++slot) {
    float* key = keys + count * stride;
    if (slot < list.window_slots) {
      if (slot >= window) continue;
      DecodeWindowRecord(list.window->entry(list.window_begin + slot), dim, key);
    } else {
      DecodeKvRecord(list.entries->entry(list.selected[slot - list.window_slots]), dim, key);
    }
    ++count;
  }
  return count;
}

void AttendHeads(const AttentionArgs& args, int64_t query, int64_t first_head, int64_t heads) {
  const AttentionQuery& list = args.lists[query];
  const int64_t dim = args.dim;
  float* keys = Scratch(0, kAttentionBlock * dim);
  float* q = Scratch(1, kHeadsPerUnit * dim);
  float* acc = Scratch(2, kHeadsPerUnit * dim);
  const int64_t offset = (query * args.heads + first_head) * dim;
  for (int64_t i = 0; i < heads * dim; ++i) q[i] = ToFloat(args.q[offset + i]);
  std::fill_n(acc, heads * dim, 0.0f);
  Head state[kHeadsPerUnit];

  const int64_t slots = list.window_slots + list.selected_count;
  for (int64_t begin = 0; begin < slots; begin += kAttentionBlock) {
    const int64_t end = std::min<int64_t>(slots, begin + kAttentionBlock);
    const int64_t count = DecodeBlock(list, dim, dim, begin, end, keys);
    if (count == 0) continue;
    for (int64_t h = 0; h < heads; ++h) {
      float z[kAttentionBlock];
      ExactDots(q + h * dim, keys, count, dim, dim, z);
      SoftmaxBlock(z, count, args.scale, state[h], acc + h * dim, dim);
      ExactAccumulate(z, keys, count, dim, dim, acc + h * dim);
    }
  }
  for (int64_t h = 0; h < heads; ++h) {
    const float total = state[h].sum + Exp(args.sink[first_head + h] - state[h].max);
    for (int64_t d = 0; d < dim; ++d)
      args.out[offset + h * dim + d] = ToBf16(acc[h * dim + d] / total);
  }
}

}  // namespace

void Attention(ThreadPool& pool, const AttentionArgs& args) {
  const int64_t units = CeilDiv(args.heads, kHeadsPerUnit);
  pool.ParallelFor(args.queries * units, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % units * kHeadsPerUnit;
      AttendHeads(args, i / units, first, std::min(kHeadsPerUnit, args.heads - first));
    }
  });
}

}  // namespace deepinfer::kernels::reference
