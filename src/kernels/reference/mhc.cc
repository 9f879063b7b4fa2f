// Manifold-constrained hyper-connections: mixing coefficients, collapse, expansion.
// Source: spec sections 2.2, 2.3.
#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "kernels/reference/decode.h"
#include "kernels/reference/kernels.h"
#include "kernels/reference/reductions.h"

namespace deepinfer::kernels::reference {
namespace {

constexpr int kMaxStreams = 8;

DEEPINFER_MULTIVERSION float DotF32Bf16(const float* w, const bf16* x, int64_t count) {
  return SumRow(count, [w, x](int64_t i) { return w[i] * ToFloat(x[i]); });
}

DEEPINFER_MULTIVERSION float SumSquaresRow(const bf16* x, int64_t count) {
  return SumSquares(x, count);
}

// c [n, n] becomes nearly doubly stochastic: a softmax of the rows, then alternating column and row
// normalisations, columns last.
void Sinkhorn(float* c, int n, int iterations, float eps) {
  for (int a = 0; a < n; ++a) {
    float* row = c + a * n;
    const float top = *std::max_element(row, row + n);
    float sum = 0;
    for (int b = 0; b < n; ++b) sum += row[b] = Exp(row[b] - top);
    for (int b = 0; b < n; ++b) row[b] = row[b] / sum + eps;
  }
  const auto normalise_columns = [&] {
    for (int b = 0; b < n; ++b) {
      float sum = 0;
      for (int a = 0; a < n; ++a) sum += c[a * n + b];
      for (int a = 0; a < n; ++a) c[a * n + b] /= sum + eps;
    }
  };
  normalise_columns();
  for (int i = 1; i < iterations; ++i) {
    for (int a = 0; a < n; ++a) {
      float sum = 0;
      for (int b = 0; b < n; ++b) sum += c[a * n + b];
      for (int b = 0; b < n; ++b) c[a * n + b] /= sum + eps;
    }
    normalise_columns();
  }
}

void Coefficients(const MhcArgs& args, int64_t r, const float* mixes) {
  const int n = args.streams;
  for (int j = 0; j < n; ++j) {
    args.pre[r * n + j] = Sigmoid(mixes[j] * args.scale[0] + args.base[j]) + args.hc_eps;
    args.post[r * n + j] = 2.0f * Sigmoid(mixes[n + j] * args.scale[1] + args.base[n + j]);
  }
  float* comb = args.comb + r * n * n;
  for (int i = 0; i < n * n; ++i) {
    comb[i] = mixes[2 * n + i] * args.scale[2] + args.base[2 * n + i];
  }
  Sinkhorn(comb, n, args.sinkhorn_iterations, args.hc_eps);
}

DEEPINFER_MULTIVERSION void CollapseRow(const bf16* h, const float* pre, int streams,
                                        int64_t hidden, bf16* x) {
  for (int64_t d = 0; d < hidden; ++d) {
    float sum = 0;
    for (int s = 0; s < streams; ++s) sum += pre[s] * ToFloat(h[s * hidden + d]);
    x[d] = ToBf16(sum);
  }
}

DEEPINFER_MULTIVERSION void ExpandRow(const bf16* y, const float* post, const float* comb,
                                      int streams, int64_t hidden, bf16* h) {
  for (int64_t d = 0; d < hidden; ++d) {
    float old[kMaxStreams];
    for (int s = 0; s < streams; ++s) old[s] = ToFloat(h[s * hidden + d]);
    for (int t = 0; t < streams; ++t) {
      float mixed = 0;
      for (int s = 0; s < streams; ++s) mixed += comb[s * streams + t] * old[s];
      h[t * hidden + d] = ToBf16(post[t] * ToFloat(y[d]) + mixed);
    }
  }
}

}  // namespace

void MhcMixes(ThreadPool& pool, const MhcArgs& args) {
  const int64_t width = args.streams * args.hidden, mixes = args.fn.rows;
  // The dots of all rows are independent: split over (row, mix) so that one row uses all threads.
  float* dots = Scratch(2, args.rows * mixes);
  pool.ParallelFor(args.rows * mixes, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      dots[i] = DotF32Bf16(args.fn.values + i % mixes * width, args.h + i / mixes * width, width);
    }
  });
  pool.ParallelFor(args.rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float mean = SumSquaresRow(args.h + r * width, width) / static_cast<float>(width);
      const float norm = 1.0f / std::sqrt(mean + args.norm_eps);
      for (int64_t j = 0; j < mixes; ++j) dots[r * mixes + j] *= norm;
      Coefficients(args, r, dots + r * mixes);
    }
  });
}

void MhcCollapse(ThreadPool& pool, const bf16* h, const float* pre, int64_t rows, int streams,
                 int64_t hidden, bf16* x) {
  pool.ParallelFor(rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      CollapseRow(h + r * streams * hidden, pre + r * streams, streams, hidden, x + r * hidden);
    }
  });
}

void MhcExpand(ThreadPool& pool, const bf16* y, const float* post, const float* comb, int64_t rows,
               int streams, int64_t hidden, bf16* h) {
  pool.ParallelFor(rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      ExpandRow(y + r * hidden, post + r * streams, comb + r * streams * streams, streams, hidden,
                h + r * streams * hidden);
    }
  });
}

void StreamMean(ThreadPool& pool, const bf16* h, int64_t rows, int streams, int64_t hidden,
                bf16* tap, int64_t tap_stride) {
  pool.ParallelFor(rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t d = 0; d < hidden; ++d) {
        float sum = 0;
        for (int s = 0; s < streams; ++s) sum += ToFloat(h[(r * streams + s) * hidden + d]);
        tap[r * tap_stride + d] = ToBf16(sum / static_cast<float>(streams));
      }
    }
  });
}

}  // namespace deepinfer::kernels::reference
