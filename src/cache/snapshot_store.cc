#include "cache/snapshot_store.h"

#include <utility>

namespace deepinfer::cache {

SnapshotStore::SnapshotStore(int64_t snapshot_count, int64_t block_count)
    : pool_(snapshot_count),
      of_block_(block_count, kNoSnapshot),
      block_of_(snapshot_count, kNoBlock),
      idle_(snapshot_count) {
  pool_.set_retainer(this);
}

SnapshotStore::~SnapshotStore() { pool_.set_retainer(nullptr); }

SnapshotRef SnapshotStore::Allocate() {
  if (pool_.free() == 0 && !idle_.empty()) {
    const SnapshotId victim = idle_.front();
    idle_.Remove(victim);
    Unlink(victim);
    pool_.Free(victim);
  }
  return pool_.Allocate();
}

void SnapshotStore::Attach(BlockId block, SnapshotRef snapshot) {
  if (Has(block)) return;
  of_block_[block] = snapshot.id();
  block_of_[snapshot.id()] = block;
}

SnapshotRef SnapshotStore::Acquire(BlockId block) {
  const SnapshotId id = of_block_[block];
  if (!pool_.is_held(id)) idle_.Remove(id);
  return pool_.Hold(id);
}

void SnapshotStore::Detach(BlockId block) {
  const SnapshotId id = of_block_[block];
  if (id == kNoSnapshot) return;
  Unlink(id);
  if (pool_.is_held(id)) return;  // becomes free with its last handle
  idle_.Remove(id);
  pool_.Free(id);
}

bool SnapshotStore::Retain(SnapshotId id) {
  if (block_of_[id] == kNoBlock) return false;
  idle_.PushBack(id);
  return true;
}

void SnapshotStore::Unlink(SnapshotId id) {
  of_block_[block_of_[id]] = kNoSnapshot;
  block_of_[id] = kNoBlock;
}

}  // namespace deepinfer::cache
