// The prefix cache: which blocks hold the content of which token prefixes.
// Source: spec algorithms sections 7.1 to 7.3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/block_table.h"
#include "cache/eviction_policy.h"
#include "cache/hash_chain.h"
#include "cache/hash_index.h"
#include "cache/pools.h"
#include "cache/snapshot_store.h"

namespace deepinfer::cache {

// A cached block is either held by sequences or idle: retained in the pool until EvictOne() frees
// it. What is cached is closed: the block before a cached block is cached, and held if that one is.
// Not thread-safe. The pool must outlive the index, and the index every handle of the pool's
// blocks.
class PrefixIndex final : private Retainer<BlockKind> {
 public:
  PrefixIndex(BlockPool& blocks, EvictionKind eviction, int64_t snapshot_count);
  ~PrefixIndex();

  // Leading blocks of `chain` that are cached.
  int64_t CountCached(std::span<const Hash128> chain) const;
  // Those of `chain`, all cached, that are idle.
  int64_t CountIdle(std::span<const Hash128> chain) const;
  // Whether the block of `hash` is cached and has a snapshot.
  bool HasSnapshot(const Hash128& hash) const;
  // Appends shares of the blocks of `chain`, all cached, to `table`. Counts as a hit of each.
  void Acquire(std::span<const Hash128> chain, BlockTable& table);
  // A share of the snapshot of `hash`, which HasSnapshot().
  SnapshotRef AcquireSnapshot(const Hash128& hash);

  // Caches the next block of a sequence: entry i of its table, whose content is computed and
  // confirmed; entries before i are cached already. When another block is cached under `hash`, a
  // share of that one takes the entry and the sequence's own block is returned (with the same
  // content, to be dropped once nothing reads it any more); else the result is empty.
  BlockRef Insert(const Hash128& hash, int64_t i, BlockTable& table);

  // Makes an idle block free. False when none is idle.
  bool EvictOne();
  // Makes every idle block free.
  void Clear();

  SnapshotStore& snapshots() { return snapshots_; }
  const SnapshotStore& snapshots() const { return snapshots_; }

 private:
  struct Node {
    Hash128 hash;
    BlockId parent = kNoBlock;
    bool cached = false;
  };
  bool Retain(BlockId id) override;

  BlockPool& blocks_;
  HashIndex index_;
  std::vector<Node> nodes_;            // one a block of the pool
  std::vector<int32_t> child_counts_;  // cached blocks whose parent is this one
  std::unique_ptr<EvictionPolicy> policy_;
  SnapshotStore snapshots_;
};

}  // namespace deepinfer::cache
