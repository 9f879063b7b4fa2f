// How row kernels share their work among threads.
#pragma once

#include "base/thread_pool.h"
#include "kernels/cpu/ops/target.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// Operations on 16 lanes that take about 2 us: a smaller share costs more to hand out than it
// saves.
inline constexpr int64_t kMinShareOperations = 8192;

// The grain of ParallelFor for units of `operations` operations on 16 lanes each.
DEEPINFER_INLINE int64_t Grain(int64_t operations) {
  return Max<int64_t>(1, kMinShareOperations / Max<int64_t>(1, operations));
}

// Columns of a row that kernels hand out together: a multiple of the lanes.
inline constexpr int64_t kPartCols = 512;

// fn(row, begin, end) for parts of at most kPartCols columns that cover [0, cols) of every row.
// `operations`: those on every 16 columns.
template <typename Fn>
DEEPINFER_INLINE void ForParts(ThreadPool& pool, int64_t rows, int64_t cols, int64_t operations,
                               const Fn& fn) {
  const int64_t parts = (cols + kPartCols - 1) / kPartCols;
  const int64_t part_operations = Min(cols, kPartCols) / 16 * operations;
  pool.ParallelFor(rows * parts, Grain(part_operations), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % parts * kPartCols;
      fn(i / parts, first, Min(cols, first + kPartCols));
    }
  });
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
