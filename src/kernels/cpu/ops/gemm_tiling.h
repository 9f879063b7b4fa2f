// How the input rows of a product are cut, and how its outputs are stored.
#pragma once

#include "kernels/cpu/ops/dot.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

// Tiles of nearly equal size. Expanded rows lie as [tiles, steps, rows of the tile, 32].
struct Tiling {
  int64_t tiles, base, larger;  // the first `larger` tiles have base + 1 rows
  Tiling(int64_t rows, int64_t most)
      : tiles((rows + most - 1) / most), base(rows / tiles), larger(rows % tiles) {}
  int64_t first_row(int64_t tile) const { return tile * base + Min(tile, larger); }
  int64_t rows(int64_t tile) const { return base + (tile < larger ? 1 : 0); }
};

DEEPINFER_INLINE void StoreOutput(float value, bf16* y) { *y = NearestBf16(value); }
DEEPINFER_INLINE void StoreOutput(float value, float* y) { *y = value; }

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
