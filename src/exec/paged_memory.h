// The memory behind the ids of blocks, slots and snapshots.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/slab.h"
#include "cache/pools.h"
#include "model/v41/cache_layout.h"
#include "model/v41/sequence_state.h"

namespace deepinfer::exec {

struct PoolSizes {
  int64_t blocks = 0;
  int64_t slots = 0;
  int64_t snapshots = 0;
};

// A running sequence's place.
struct SlotState {
  SlotState(std::shared_ptr<const model::v41::CacheLayout> layout, uint8_t* memory)
      : state(std::move(layout), memory) {}

  model::v41::SequenceState state;
  std::vector<uint8_t*> table;  // its blocks
  int32_t newest = -1;          // the last token drawn; -1: none since the slot changed hands
  bool failed = false;          // a row of the sequence could not run; later ones must not
};

// Not thread-safe.
class PagedMemory {
 public:
  // Errors: the system does not give the address space.
  static Result<std::unique_ptr<PagedMemory>> Create(
      std::shared_ptr<const model::v41::CacheLayout> layout, const PoolSizes& sizes);

  SlotState& slot(cache::SlotId id) { return *slots_[static_cast<size_t>(id)]; }
  uint8_t* block(cache::BlockId id) const { return block_slab_[id]; }
  std::span<uint8_t> snapshot(cache::SnapshotId id) const {
    return {snapshot_slab_[id], static_cast<size_t>(layout_->slot_bytes)};
  }
  const model::v41::CacheLayout& layout() const { return *layout_; }

 private:
  PagedMemory(std::shared_ptr<const model::v41::CacheLayout> layout, Slab blocks, Slab slots,
              Slab snapshots);

  const std::shared_ptr<const model::v41::CacheLayout> layout_;
  Slab block_slab_, slot_slab_, snapshot_slab_;
  std::vector<std::unique_ptr<SlotState>> slots_;
};

}  // namespace deepinfer::exec
