#include "cache/prefix_index.h"

#include <cassert>

namespace deepinfer::cache {

PrefixIndex::PrefixIndex(BlockPool& blocks, EvictionKind eviction, int64_t snapshot_count)
    : blocks_(blocks),
      index_(blocks.size()),
      nodes_(blocks.size()),
      child_counts_(blocks.size(), 0),
      policy_(MakeEvictionPolicy(eviction, blocks.size())),
      snapshots_(snapshot_count, blocks.size()) {
  blocks_.set_retainer(this);
}

PrefixIndex::~PrefixIndex() {
  Clear();
  blocks_.set_retainer(nullptr);
}

int64_t PrefixIndex::CountCached(std::span<const Hash128> chain) const {
  int64_t count = 0;
  while (count < std::ssize(chain) && index_.Find(chain[count]) >= 0) ++count;
  return count;
}

int64_t PrefixIndex::CountIdle(std::span<const Hash128> chain) const {
  int64_t count = 0;
  for (const Hash128& hash : chain) count += !blocks_.is_held(index_.Find(hash));
  return count;
}

bool PrefixIndex::HasSnapshot(const Hash128& hash) const {
  const BlockId block = index_.Find(hash);
  return block != kNoBlock && snapshots_.Has(block);
}

void PrefixIndex::Acquire(std::span<const Hash128> chain, BlockTable& table) {
  for (const Hash128& hash : chain) {
    const BlockId block = index_.Find(hash);
    policy_->Hit(block);
    if (!blocks_.is_held(block)) policy_->BecameHeld(block);
    table.Append(blocks_.Hold(block));
  }
}

SnapshotRef PrefixIndex::AcquireSnapshot(const Hash128& hash) {
  return snapshots_.Acquire(index_.Find(hash));
}

BlockRef PrefixIndex::Insert(const Hash128& hash, int64_t i, BlockTable& table) {
  const BlockId known = index_.Find(hash);
  if (known != kNoBlock) {
    if (!blocks_.is_held(known)) policy_->BecameHeld(known);
    return table.Replace(i, blocks_.Hold(known));
  }
  const BlockId block = table.id(i);
  assert(!nodes_[block].cached);
  nodes_[block] = {hash, i == 0 ? kNoBlock : table.id(i - 1), true};
  if (i > 0) ++child_counts_[table.id(i - 1)];
  index_.Insert(hash, block);
  policy_->Inserted(block, hash);
  return {};
}

bool PrefixIndex::EvictOne() {
  const BlockId victim = policy_->TakeVictim(child_counts_);
  if (victim == kNoBlock) return false;
  Node& node = nodes_[victim];
  assert(node.cached && child_counts_[victim] == 0);
  policy_->Evicted(victim, node.hash);
  if (node.parent != kNoBlock) --child_counts_[node.parent];
  index_.Erase(node.hash);
  node.cached = false;
  snapshots_.Detach(victim);
  blocks_.Free(victim);
  return true;
}

void PrefixIndex::Clear() {
  while (EvictOne()) {
  }
}

bool PrefixIndex::Retain(BlockId id) {
  if (!nodes_[id].cached) return false;
  policy_->BecameIdle(id);
  return true;
}

}  // namespace deepinfer::cache
