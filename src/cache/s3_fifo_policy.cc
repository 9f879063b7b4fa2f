#include <algorithm>
#include <memory>
#include <vector>

#include "cache/eviction_policy.h"
#include "cache/hash_index.h"
#include "cache/id_list.h"

namespace deepinfer::cache {
namespace {

constexpr int kMaxHits = 3;
// Hits above which a block of the small queue moves to the main one.
constexpr int kPromotionHits = 1;
// The small queue's share of the idle blocks: one part of this many.
constexpr int64_t kSmallShare = 10;

// The last keys that were evicted from the small queue.
class GhostQueue {
 public:
  explicit GhostQueue(int64_t size) : keys_(std::max<int64_t>(size, 1)), index_(size + 1) {}

  void Add(const Hash128& key) {
    // The oldest place is taken over, unless its key has left already.
    if (index_.Find(keys_[next_]) == next_) index_.Erase(keys_[next_]);
    index_.Erase(key);
    keys_[next_] = key;
    index_.Insert(key, next_);
    next_ = static_cast<int32_t>((next_ + 1) % std::ssize(keys_));
  }
  // Whether `key` was there; it is gone afterwards.
  bool Take(const Hash128& key) {
    if (index_.Find(key) < 0) return false;
    index_.Erase(key);
    return true;
  }

 private:
  std::vector<Hash128> keys_;
  HashIndex index_;
  int32_t next_ = 0;
};

// S3-FIFO with two changes. Held blocks are in no queue and enter at its end when they become idle,
// so that held ones cost nothing. A block goes only after its children: one of the small queue that
// has children moves to the main queue, and while the main queue's first has some, the small queue
// gives the victim.
class S3FifoPolicy final : public EvictionPolicy {
 public:
  explicit S3FifoPolicy(int64_t block_count)
      : hits_(block_count),
        in_main_(block_count),
        small_(block_count),
        main_(block_count),
        ghosts_(block_count) {}

  void Inserted(BlockId block, const Hash128& key) override {
    hits_[block] = 0;
    in_main_[block] = ghosts_.Take(key);
  }
  void Hit(BlockId block) override { hits_[block] = std::min(hits_[block] + 1, kMaxHits); }
  void BecameIdle(BlockId block) override { QueueOf(block).PushBack(block); }
  void BecameHeld(BlockId block) override { QueueOf(block).Remove(block); }

  BlockId TakeVictim(std::span<const int32_t> child_counts) override {
    // Every turn empties the small queue by one, lowers a counter, or rotates the main queue, which
    // has a block without children when the small queue is empty.
    while (!small_.empty() || !main_.empty()) {
      const BlockId victim =
          SmallIsNext(child_counts) ? FromSmall(child_counts) : FromMain(child_counts);
      if (victim != kNoBlock) return victim;
    }
    return kNoBlock;
  }
  void Evicted(BlockId block, const Hash128& key) override {
    if (!in_main_[block]) ghosts_.Add(key);
  }

 private:
  IdList& QueueOf(BlockId block) { return in_main_[block] ? main_ : small_; }

  bool SmallIsNext(std::span<const int32_t> child_counts) const {
    if (small_.empty() || main_.empty()) return main_.empty();
    return small_.size() * kSmallShare > small_.size() + main_.size() ||
           child_counts[main_.front()] > 0;
  }
  BlockId FromSmall(std::span<const int32_t> child_counts) {
    const BlockId block = small_.front();
    small_.Remove(block);
    if (child_counts[block] == 0 && hits_[block] <= kPromotionHits) return block;
    if (child_counts[block] == 0) hits_[block] = 0;
    in_main_[block] = true;
    main_.PushBack(block);
    return kNoBlock;
  }
  BlockId FromMain(std::span<const int32_t> child_counts) {
    const BlockId block = main_.front();
    main_.Remove(block);
    if (child_counts[block] == 0) {
      if (hits_[block] == 0) return block;
      --hits_[block];
    }
    main_.PushBack(block);
    return kNoBlock;
  }

  std::vector<int> hits_;
  std::vector<bool> in_main_;
  IdList small_;
  IdList main_;
  GhostQueue ghosts_;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeS3FifoPolicy(int64_t block_count) {
  return std::make_unique<S3FifoPolicy>(block_count);
}

}  // namespace deepinfer::cache
