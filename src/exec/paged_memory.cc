#include "exec/paged_memory.h"

#include <utility>

namespace deepinfer::exec {

Result<std::unique_ptr<PagedMemory>> PagedMemory::Create(
    std::shared_ptr<const model::v41::CacheLayout> layout, const PoolSizes& sizes) {
  DI_ASSIGN_OR_RETURN(Slab blocks, Slab::Create(sizes.blocks, layout->block_bytes));
  DI_ASSIGN_OR_RETURN(Slab slots, Slab::Create(sizes.slots, layout->slot_bytes));
  DI_ASSIGN_OR_RETURN(Slab snapshots, Slab::Create(sizes.snapshots, layout->slot_bytes));
  return std::unique_ptr<PagedMemory>(new PagedMemory(std::move(layout), std::move(blocks),
                                                      std::move(slots), std::move(snapshots)));
}

PagedMemory::PagedMemory(std::shared_ptr<const model::v41::CacheLayout> layout, Slab blocks,
                         Slab slots, Slab snapshots)
    : layout_(std::move(layout)),
      block_slab_(std::move(blocks)),
      slot_slab_(std::move(slots)),
      snapshot_slab_(std::move(snapshots)) {
  for (int64_t i = 0; i < slot_slab_.count(); ++i) {
    slots_.push_back(std::make_unique<SlotState>(layout_, slot_slab_[i]));
  }
}

}  // namespace deepinfer::exec
