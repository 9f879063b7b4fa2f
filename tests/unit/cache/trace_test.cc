// Hit rates of the policies on a trace whose prefixes do not fit, beside the best any could do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cache/prefix_index.h"

namespace deepinfer::cache {
namespace {

constexpr int64_t kBlocks = 300;

using Trace = std::vector<std::vector<Hash128>>;

// Conversations of 200 users with Zipf-like popularity, each with a prefix of 4 to 19 blocks, and a
// tail of 3 blocks that never returns: about 2300 popular blocks.
Trace MakeTrace() {
  Trace trace;
  for (uint64_t i = 0; i < 4000; ++i) {
    const double u = static_cast<double>(RandomBits(3, i) >> 11) / (uint64_t{1} << 53);
    const int32_t user = static_cast<int32_t>(std::pow(200.0, u)) - 1;
    const int64_t shared = 4 + static_cast<int64_t>(RandomBits(4, user) % 16);
    std::vector<Hash128> chain;
    Hash128 parent = NamespaceHash("");
    for (int64_t block = 0; block < shared + 3; ++block) {
      const std::vector<int32_t> tokens{user, block < shared ? 0 : static_cast<int32_t>(i + 1)};
      chain.push_back(parent = ChainHash(parent, tokens));
    }
    trace.push_back(std::move(chain));
  }
  return trace;
}

int64_t HitsOf(EvictionKind kind, const Trace& trace) {
  BlockPool pool(kBlocks);
  PrefixIndex index(pool, kind, 0);
  int64_t hits = 0;
  for (const std::vector<Hash128>& chain : trace) {
    BlockTable table;
    const int64_t cached = index.CountCached(chain);
    hits += cached;
    index.Acquire(std::span(chain).first(cached), table);
    for (int64_t i = cached; i < std::ssize(chain); ++i) {
      const bool stalled = pool.free() == 0 && !index.EvictOne();
      EXPECT_FALSE(stalled);
      table.Append(pool.Allocate());
      index.Insert(chain[i], i, table);
    }
    EXPECT_EQ(pool.free() + pool.retained() + pool.held(), kBlocks);
  }
  EXPECT_EQ(pool.held(), 0);
  return hits;
}

// Belady: evicts what is needed again last, of what the running request does not hold.
int64_t BestHits(const Trace& trace) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  std::map<std::pair<uint64_t, uint64_t>, std::vector<int64_t>> uses;
  for (int64_t i = 0; i < std::ssize(trace); ++i) {
    for (const Hash128& hash : trace[i]) uses[{hash.low, hash.high}].push_back(i);
  }
  std::map<std::pair<uint64_t, uint64_t>, int64_t> next_use;  // of what is cached
  int64_t hits = 0;
  for (int64_t i = 0; i < std::ssize(trace); ++i) {
    for (const Hash128& hash : trace[i]) {
      const std::pair key{hash.low, hash.high};
      hits += next_use.contains(key);
      const std::vector<int64_t>& times = uses[key];
      const auto later = std::upper_bound(times.begin(), times.end(), i);
      next_use[key] = later == times.end() ? kNever : *later;
    }
    while (std::ssize(next_use) > kBlocks) {
      next_use.erase(
          std::max_element(next_use.begin(), next_use.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; }));
    }
  }
  return hits;
}

TEST(TraceTest, PoliciesComeNearTheOptimumAndNeitherStallNorLeak) {
  const Trace trace = MakeTrace();
  const int64_t best = BestHits(trace);
  const int64_t lru = HitsOf(EvictionKind::kLru, trace);
  const int64_t s3_fifo = HitsOf(EvictionKind::kS3Fifo, trace);
  int64_t blocks = 0;
  for (const auto& chain : trace) blocks += std::ssize(chain);
  std::cout << "hit rates: optimum " << 1.0 * best / blocks << ", LRU " << 1.0 * lru / blocks
            << ", S3-FIFO " << 1.0 * s3_fifo / blocks << "\n";
  EXPECT_LE(lru, best);
  EXPECT_LE(s3_fifo, best);
  EXPECT_GT(lru, best / 2);
  EXPECT_GT(s3_fifo, lru) << "the trace has one-shot tails, which S3-FIFO drops first";
}

}  // namespace
}  // namespace deepinfer::cache
