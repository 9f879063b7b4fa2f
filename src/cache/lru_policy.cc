#include <memory>

#include "cache/eviction_policy.h"
#include "cache/id_list.h"

namespace deepinfer::cache {
namespace {

// Idle blocks in the order in which they became idle. Children come before their parents, since
// they become idle first and any use of a child is one of its parent; so the front never has
// children.
class LruPolicy final : public EvictionPolicy {
 public:
  explicit LruPolicy(int64_t block_count) : idle_(block_count) {}

  void Inserted(BlockId, const Hash128&) override {}
  void Hit(BlockId) override {}
  void BecameIdle(BlockId block) override { idle_.PushBack(block); }
  void BecameHeld(BlockId block) override { idle_.Remove(block); }
  BlockId TakeVictim(std::span<const int32_t>) override {
    if (idle_.empty()) return kNoBlock;
    const BlockId victim = idle_.front();
    idle_.Remove(victim);
    return victim;
  }
  void Evicted(BlockId, const Hash128&) override {}

 private:
  IdList idle_;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLruPolicy(int64_t block_count) {
  return std::make_unique<LruPolicy>(block_count);
}

std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(EvictionKind kind, int64_t block_count) {
  return kind == EvictionKind::kLru ? MakeLruPolicy(block_count) : MakeS3FifoPolicy(block_count);
}

}  // namespace deepinfer::cache
