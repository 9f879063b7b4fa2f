// How the running prefills of a step share its rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace deepinfer::sched {

// The end of a chunk that starts at `position`: `stop` if `rows` reach it, else the last multiple
// of `alignment` they reach, else `position`.
int64_t ChunkEnd(int64_t position, int64_t stop, int64_t rows, int64_t alignment);

struct PrefillDemand {
  int64_t position = 0;
  int64_t stop = 0;       // where the next chunk must end at the latest
  int64_t remaining = 0;  // rows until the whole prompt is computed
  int64_t chunk_end = 0;  // result; position: no rows
};

// Shares `rows` among `demands`, the oldest first: half of them (at least one alignment) go to the
// oldest, so that it ends however many arrive after it; the others to those with the fewest rows
// remaining, so that a short prompt does not wait for a long one. What is left goes to whoever can
// use it. Returns the rows given. `order` is scratch.
int64_t SharePrefillRows(int64_t rows, int64_t alignment, std::span<PrefillDemand> demands,
                         std::vector<int64_t>& order);

}  // namespace deepinfer::sched
