// The memory that sequences share: blocks, slots, cached prefixes; and what steps in flight may
// still use of it although no request owns it any more.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/block_table.h"
#include "cache/pools.h"
#include "cache/prefix_index.h"
#include "cache/prefix_match.h"
#include "sched/options.h"
#include "sched/request.h"

namespace deepinfer::sched {

class SequenceMemory {
 public:
  // The options are valid.
  explicit SequenceMemory(const SchedulerOptions& options);

  // Blocks that Append() can give: free ones and idle cached ones.
  int64_t available_blocks() const { return blocks_.free() + blocks_.retained(); }
  // Shares of blocks that become available, at most, when the steps in flight have ended.
  int64_t retiring_blocks() const { return retiring_blocks_; }
  int64_t free_slots() const { return slots_.free(); }
  // There are as many available blocks, evicting cached ones as needed.
  void Append(cache::BlockTable& table, int64_t count);
  // There is a free slot.
  cache::SlotRef AllocateSlot() { return slots_.Allocate(); }
  cache::PrefixIndex& index() { return index_; }

  // Steps up to `step` are launched from now on.
  void Launched(int64_t step) { launched_ = step; }
  // Step `step` has ended, and all before it: what only they may have used is given back.
  void Ended(int64_t step);
  // Gives resources back when the last launched step has ended.
  void Retire(Sequence sequence);
  void Retire(cache::BlockRef block);
  void Retire(cache::SnapshotRef snapshot);

  const cache::BlockPool& blocks() const { return blocks_; }
  const cache::SlotPool& slots() const { return slots_; }
  const cache::SnapshotPool& snapshots() const { return index_.snapshots().pool(); }

 private:
  struct Retired {
    int64_t step;
    cache::SlotRef slot;
    cache::BlockTable table;
    cache::BlockRef block;
    cache::SnapshotRef snapshot;
    int64_t block_count() const { return table.size() + (block ? 1 : 0); }
  };
  void Retire(Retired retired);

  cache::BlockPool blocks_;
  cache::SlotPool slots_;
  cache::PrefixIndex index_;
  int64_t launched_ = -1;
  int64_t ended_ = -1;
  int64_t retiring_blocks_ = 0;
  std::vector<Retired> retired_;  // by step, ascending
};

}  // namespace deepinfer::sched
