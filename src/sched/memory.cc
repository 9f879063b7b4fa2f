#include "sched/memory.h"

#include <algorithm>
#include <utility>

namespace deepinfer::sched {

SequenceMemory::SequenceMemory(const SchedulerOptions& options)
    : blocks_(options.block_count),
      slots_(options.max_num_seqs),
      index_(
          blocks_, options.eviction,
          options.prefix_mode == cache::PrefixMode::kDeterministic ? options.snapshot_count : 0) {}

void SequenceMemory::Append(cache::BlockTable& table, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (blocks_.free() == 0) index_.EvictOne();
    table.Append(blocks_.Allocate());
  }
}

void SequenceMemory::Ended(int64_t step) {
  ended_ = step;
  const auto end = std::find_if(retired_.begin(), retired_.end(),
                                [&](const Retired& retired) { return retired.step > step; });
  for (auto it = retired_.begin(); it != end; ++it) retiring_blocks_ -= it->block_count();
  retired_.erase(retired_.begin(), end);
}

void SequenceMemory::Retire(Retired retired) {
  if (launched_ <= ended_) return;  // nothing is in flight: given back at once
  retiring_blocks_ += retired.block_count();
  retired_.push_back(std::move(retired));
}

void SequenceMemory::Retire(Sequence sequence) {
  Retire(Retired{launched_, std::move(sequence.slot), std::move(sequence.blocks), {}, {}});
}

void SequenceMemory::Retire(cache::BlockRef block) {
  Retire(Retired{launched_, {}, {}, std::move(block), {}});
}

void SequenceMemory::Retire(cache::SnapshotRef snapshot) {
  if (snapshot) Retire(Retired{launched_, {}, {}, {}, std::move(snapshot)});
}

}  // namespace deepinfer::sched
