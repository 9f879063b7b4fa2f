#include "sched/prefill_share.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace deepinfer::sched {

int64_t ChunkEnd(int64_t position, int64_t stop, int64_t rows, int64_t alignment) {
  if (stop - position <= rows) return stop;
  return std::max((position + rows) / alignment * alignment, position);
}

int64_t SharePrefillRows(int64_t rows, int64_t alignment, std::span<PrefillDemand> demands,
                         std::vector<int64_t>& order) {
  if (demands.empty()) return 0;
  int64_t left = rows;
  for (PrefillDemand& demand : demands) demand.chunk_end = demand.position;
  const auto extend = [&](PrefillDemand& demand, int64_t share) {
    const int64_t had = demand.chunk_end - demand.position;
    demand.chunk_end = ChunkEnd(demand.position, demand.stop, had + share, alignment);
    left -= demand.chunk_end - demand.position - had;
  };
  extend(demands[0], std::min(rows, std::max(rows / 2, alignment)));
  order.resize(demands.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::pair(demands[a].remaining, a) < std::pair(demands[b].remaining, b);
  });
  for (const int64_t i : order) extend(demands[i], left);
  return rows - left;
}

}  // namespace deepinfer::sched
