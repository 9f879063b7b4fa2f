// The head's largest logits: all of them, then a selection. Source: spec section 2.1.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/reference/kernels.h"

namespace deepinfer::kernels::reference {

void TopLogits(ThreadPool& pool, const TopLogitsArgs& args) {
  const int64_t vocabulary = args.w.rows;
  std::vector<float> logits(args.x.rows * vocabulary);
  const GemmItem product = MakeGemm(args.x, args.w, logits.data(), vocabulary);
  Gemm(pool, &product, 1);
  pool.ParallelFor(args.x.rows, 1, [&](int64_t begin, int64_t end, int) {
    std::vector<int32_t> order(vocabulary);
    for (int64_t r = begin; r < end; ++r) {
      const float* row = logits.data() + r * vocabulary;
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + args.topk, order.end(),
                        [row](int32_t a, int32_t b) {
                          const bool a_nan = std::isnan(row[a]), b_nan = std::isnan(row[b]);
                          if (a_nan != b_nan) return a_nan;
                          if (!a_nan && row[a] != row[b]) return row[a] > row[b];
                          return a < b;
                        });
      for (int64_t k = 0; k < args.topk; ++k) {
        args.ids[r * args.topk + k] = order[k];
        args.logits[r * args.topk + k] = row[order[k]];
      }
    }
  });
}

}  // namespace deepinfer::kernels::reference
