// Which cached block goes when a new one is needed. Source: spec algorithms section 7.3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cache/hash_chain.h"
#include "cache/pools.h"

namespace deepinfer::cache {

// Told what happens to cached blocks. A block is idle while no sequence holds it; only idle blocks
// may go. A block whose children (the cached blocks that continue it) are still there must stay.
// What the caller guarantees: a block is held as long as any of its children is, and children
// become idle before their parent.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  // `block` was cached under `key`; it is held.
  virtual void Inserted(BlockId block, const Hash128& key) = 0;
  // A new sequence found `block` and is about to hold it.
  virtual void Hit(BlockId block) = 0;
  virtual void BecameIdle(BlockId block) = 0;
  virtual void BecameHeld(BlockId block) = 0;
  // Forgets and returns an idle block without children; kNoBlock when none is idle.
  // child_counts[b]: cached children of block b.
  virtual BlockId TakeVictim(std::span<const int32_t> child_counts) = 0;
  // Called for a victim: `key` is no longer cached.
  virtual void Evicted(BlockId block, const Hash128& key) = 0;
};

enum class EvictionKind {
  kLru,     // least recently held first
  kS3Fifo,  // scan resistant: blocks that nobody asked for twice go first
};

// For blocks 0 to block_count - 1.
std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(EvictionKind kind, int64_t block_count);
std::unique_ptr<EvictionPolicy> MakeLruPolicy(int64_t block_count);
std::unique_ptr<EvictionPolicy> MakeS3FifoPolicy(int64_t block_count);

}  // namespace deepinfer::cache
