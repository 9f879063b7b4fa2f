// The mixing coefficients of hyper-connections: products of the streams with fp32 weights, and what
// is made of them. Source: spec model-v41 section 2.3.
//
// A product of an fp32 weight with a bf16 value is not exact, so product and sum round apart. One
// row reads as much as all its weights (2 MB at the release's size): threads then share the mixes.
// Many rows are shared themselves, in blocks that read the weights once.
#include "base/thread_pool.h"
#include "kernels/cpu/ops/mhc.h"
#include "kernels/cpu/ops/row_sums.h"
#include "kernels/cpu/ops/shares.h"
#include "kernels/cpu/ops/sinkhorn.h"
#include "kernels/cpu/scratch.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

#if defined(__AVX512BW__)
constexpr int kTileRows = 4, kTileMixes = 6;
#elif defined(__AVX2__)
constexpr int kTileRows = 2, kTileMixes = 3;
#else
constexpr int kTileRows = 2, kTileMixes = 1;
#endif
// Rows that share one pass over the weights.
constexpr int64_t kBlockRows = 32;
// Columns of the weights that stay in the cache while the rows of a block pass: a multiple of the
// lanes.
constexpr int64_t kBlockCols = 1024;
// From so many rows a thread on, threads share rows instead of mixes.
constexpr int64_t kRowsPerThread = 8;
// From so many rows on, their mixing matrices are normalised side by side, 16 at a time.
constexpr int64_t kRowsSideBySide = 4;

enum ScratchSlot { kDotsSlot = 4, kLanesSlot = 5 };

// lanes[i][j] += h_i . fn_j over columns [begin, end), rows of h and fn `width` apart, rows of
// lanes `lanes_stride` floats apart.
template <int rows, int mixes>
void Tile(const bf16* h, const float* fn, int64_t width, int64_t begin, int64_t end, float* lanes,
          int64_t lanes_stride) {
  F32x16 acc[rows][mixes];
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < mixes; ++j) {
      acc[i][j] = begin == 0 ? Zero() : Load(lanes + i * lanes_stride + j * kLanes);
    }
  }
  const auto step = [&](auto load_h, auto load_fn) DEEPINFER_INLINE_LAMBDA {
    F32x16 x[rows];
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) x[i] = load_h(i);
#pragma GCC unroll 6
    for (int j = 0; j < mixes; ++j) {
      const F32x16 w = load_fn(j);
#pragma GCC unroll 4
      for (int i = 0; i < rows; ++i) acc[i][j] = acc[i][j] + w * x[i];
    }
  };
  int64_t k = begin;
  for (; k + kLanes <= end; k += kLanes) {
    step([&](int i) DEEPINFER_INLINE_LAMBDA { return LoadBf16(h + i * width + k); },
         [&](int j) DEEPINFER_INLINE_LAMBDA { return Load(fn + j * width + k); });
  }
  if (k < end) {
    step([&](int i) DEEPINFER_INLINE_LAMBDA { return LoadBf16First(h + i * width + k, end - k); },
         [&](int j) DEEPINFER_INLINE_LAMBDA { return LoadFirst(fn + j * width + k, end - k); });
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < mixes; ++j) Store(acc[i][j], lanes + i * lanes_stride + j * kLanes);
  }
}

// Mixes [first, last) of one tile row for columns [begin, end).
template <int rows>
void TileRow(const bf16* h, const float* fn, int64_t width, int64_t mixes, int64_t begin,
             int64_t end, float* lanes, int64_t lanes_stride) {
  int64_t j = 0;
  for (; j + kTileMixes <= mixes; j += kTileMixes) {
    Tile<rows, kTileMixes>(h, fn + j * width, width, begin, end, lanes + j * kLanes, lanes_stride);
  }
  for (; j < mixes; ++j) {
    Tile<rows, 1>(h, fn + j * width, width, begin, end, lanes + j * kLanes, lanes_stride);
  }
}

// dots[i, j] = h_i . fn_j for `rows` rows of h and `mixes` rows of fn, rows of dots dots_stride
// apart.
void Dots(const bf16* h, int64_t rows, const float* fn, int64_t mixes, int64_t width, float* dots,
          int64_t dots_stride) {
  const int64_t lanes_stride = mixes * kLanes;
  auto* lanes =
      static_cast<float*>(ScratchBytes(kLanesSlot, kBlockRows * lanes_stride * sizeof(float)));
  for (int64_t block = 0; block < rows; block += kBlockRows) {
    const int64_t count = Min(kBlockRows, rows - block);
    const bf16* x = h + block * width;
    // A single tile row streams the weights, in long runs.
    const int64_t cols = count <= kTileRows ? width : kBlockCols;
    for (int64_t k = 0; k < width; k += cols) {
      const int64_t end = Min(width, k + cols);
      int64_t i = 0;
      for (; i + kTileRows <= count; i += kTileRows) {
        TileRow<kTileRows>(x + i * width, fn, width, mixes, k, end, lanes + i * lanes_stride,
                           lanes_stride);
      }
      for (; i < count; ++i) {
        TileRow<1>(x + i * width, fn, width, mixes, k, end, lanes + i * lanes_stride, lanes_stride);
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < mixes; ++j) {
        dots[(block + i) * dots_stride + j] = SumLanes(Load(lanes + i * lanes_stride + j * kLanes));
      }
    }
  }
}

DEEPINFER_INLINE F32x16 Sigmoid(F32x16 x) { return Set1(1.0f) / (Set1(1.0f) + Exp(Zero() - x)); }

void PrePost(const MhcArgs& args, int64_t r, const float* mixes) {
  const int n = args.streams;
  float scale[kLanes] = {};
  for (int j = 0; j < n; ++j) {
    scale[j] = args.scale[0];
    scale[n + j] = args.scale[1];
  }
  const F32x16 gates = Sigmoid(LoadFirst(mixes, 2 * n) * Load(scale) + LoadFirst(args.base, 2 * n));
  float values[kLanes];
  Store(gates, values);
  for (int j = 0; j < n; ++j) {
    args.pre[r * n + j] = values[j] + args.hc_eps;
    args.post[r * n + j] = 2.0f * values[n + j];
  }
}
static_assert(2 * kMaxStreams <= kLanes);

// comb of one row.
void CombOfRow(const MhcArgs& args, int64_t r, const float* mixes) {
  const int n = args.streams;
  float* c = args.comb + r * n * n;
  for (int i = 0; i < n * n; ++i) c[i] = mixes[2 * n + i] * args.scale[2] + args.base[2 * n + i];
  if (n == 4) {
    Sinkhorn4(c, args.sinkhorn_iterations, args.hc_eps);
  } else {
    Sinkhorn<0>(c, n, args.sinkhorn_iterations, args.hc_eps);
  }
}

// comb of `rows` rows, one a lane; lanes behind repeat the last.
template <int fixed>
void CombOfRows(const MhcArgs& args, int64_t r, int64_t rows, const float* mixes,
                int64_t mixes_stride) {
  const int n = fixed > 0 ? fixed : args.streams;
  F32x16 c[fixed > 0 ? fixed * fixed : kMaxStreams * kMaxStreams];
  for (int i = 0; i < n * n; ++i) {
    float column[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) {
      column[l] = mixes[Min(l, rows - 1) * mixes_stride + 2 * n + i];
    }
    c[i] = Load(column) * Set1(args.scale[2]) + Set1(args.base[2 * n + i]);
  }
  Sinkhorn<fixed>(c, n, args.sinkhorn_iterations, args.hc_eps);
  for (int i = 0; i < n * n; ++i) {
    float column[kLanes];
    Store(c[i], column);
    for (int64_t l = 0; l < rows; ++l) args.comb[(r + l) * n * n + i] = column[l];
  }
}

// The coefficients of rows [begin, end). Row i of dots belongs to row begin + i: its products,
// which are normalised in place, and behind them its sum of squares.
void Coefficients(const MhcArgs& args, int64_t begin, int64_t end, float* dots) {
  const int64_t mixes = args.fn.rows, stride = mixes + 1;
  for (int64_t r = begin; r < end; ++r) {
    float* row = dots + (r - begin) * stride;
    const float norm = InverseNorm(row[mixes], args.streams * args.hidden, args.norm_eps);
    for (int64_t j = 0; j < mixes; ++j) row[j] *= norm;
    PrePost(args, r, row);
  }
  for (int64_t r = begin; r < end; r += kLanes) {
    const float* rows = dots + (r - begin) * stride;
    const int64_t count = Min(kLanes, end - r);
    if (count < kRowsSideBySide) {
      for (int64_t i = 0; i < count; ++i) CombOfRow(args, r + i, rows + i * stride);
    } else if (args.streams == 4) {
      CombOfRows<4>(args, r, count, rows, stride);
    } else {
      CombOfRows<0>(args, r, count, rows, stride);
    }
  }
}

// The sums of squares of `rows` rows, `stride` floats apart.
void Squares(const bf16* h, int64_t rows, int64_t width, float* sums, int64_t stride) {
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const int64_t count = Min<int64_t>(kTileRows, rows - i);
    float block[kTileRows];
    if (count == kTileRows) {
      SumSquares<kTileRows>(h + i * width, width, width, block);
    } else {
      for (int64_t j = 0; j < count; ++j) {
        SumSquares<1>(h + (i + j) * width, width, width, block + j);
      }
    }
    for (int64_t j = 0; j < count; ++j) sums[(i + j) * stride] = block[j];
  }
}

}  // namespace

void MhcMixes(ThreadPool& pool, const MhcArgs& args) {
  const int64_t width = args.streams * args.hidden, mixes = args.fn.rows, stride = mixes + 1;
  const int64_t mix_operations = (width / kLanes + 1) * 3;
  if (args.rows >= kRowsPerThread * pool.size()) {
    pool.ParallelFor(
        args.rows, Grain(mixes * mix_operations), [&](int64_t begin, int64_t end, int) {
          auto* dots =
              static_cast<float*>(ScratchBytes(kDotsSlot, kBlockRows * stride * sizeof(float)));
          for (int64_t r = begin; r < end; r += kBlockRows) {
            const int64_t count = Min(kBlockRows, end - r);
            const bf16* h = args.h + r * width;
            Dots(h, count, args.fn.values, mixes, width, dots, stride);
            Squares(h, count, width, dots + mixes, stride);
            Coefficients(args, r, r + count, dots);
          }
        });
    return;
  }
  auto* dots = static_cast<float*>(ScratchBytes(kDotsSlot, args.rows * stride * sizeof(float)));
  // The last unit is the sum of squares.
  pool.ParallelFor(stride, Grain(args.rows * mix_operations), [&](int64_t begin, int64_t end, int) {
    const int64_t last = Min(end, mixes);
    if (begin < last) {
      Dots(args.h, args.rows, args.fn.values + begin * width, last - begin, width, dots + begin,
           stride);
    }
    if (end > mixes) Squares(args.h, args.rows, width, dots + mixes, stride);
  });
  Coefficients(args, 0, args.rows, dots);
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
