// Snapshots that belong to cached blocks: the content of a slot right after the block's last
// position. They have their own, smaller, pool and their own LRU order.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/id_list.h"
#include "cache/pools.h"

namespace deepinfer::cache {

// Not thread-safe.
class SnapshotStore final : private Retainer<SnapshotKind> {
 public:
  SnapshotStore(int64_t snapshot_count, int64_t block_count);
  ~SnapshotStore();

  // A snapshot to fill: a free one, else the least recently used one that nobody holds. Empty when
  // all are held.
  SnapshotRef Allocate();
  // `snapshot` is filled and belongs to `block` from now on. When the block has one already, that
  // stays and `snapshot` becomes free.
  void Attach(BlockId block, SnapshotRef snapshot);
  bool Has(BlockId block) const { return of_block_[block] != kNoSnapshot; }
  // A share of the block's snapshot, which it has.
  SnapshotRef Acquire(BlockId block);
  // `block` is no longer cached.
  void Detach(BlockId block);

  const SnapshotPool& pool() const { return pool_; }

 private:
  bool Retain(SnapshotId id) override;
  void Unlink(SnapshotId id);

  SnapshotPool pool_;
  std::vector<SnapshotId> of_block_;
  std::vector<BlockId> block_of_;
  IdList idle_;  // retained snapshots, least recently used first
};

}  // namespace deepinfer::cache
