#include "cache/prefix_index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "cache/prefix_match.h"

namespace deepinfer::cache {
namespace {

constexpr int64_t kBlockTokens = 2;

std::vector<Hash128> Chain(const std::vector<int32_t>& tokens, std::string_view salt = "") {
  std::vector<Hash128> chain;
  ExtendChain(NamespaceHash(salt), tokens, kBlockTokens, chain);
  return chain;
}

// Tokens first, first + 1, ... of n blocks.
std::vector<Hash128> Counting(int32_t first, int64_t blocks) {
  std::vector<int32_t> tokens(blocks * kBlockTokens);
  std::iota(tokens.begin(), tokens.end(), first);
  return Chain(tokens);
}

// Computes and caches the blocks of `chain`, as a sequence that found nothing would.
BlockTable Cache(BlockPool& pool, PrefixIndex& index, const std::vector<Hash128>& chain) {
  BlockTable table;
  for (int64_t i = 0; i < std::ssize(chain); ++i) {
    if (pool.free() == 0) index.EvictOne();
    table.Append(pool.Allocate());
    index.Insert(chain[i], i, table);
  }
  return table;
}

class PrefixIndexTest : public testing::TestWithParam<EvictionKind> {
 protected:
  PrefixIndexTest() : pool_(6), index_(pool_, GetParam(), 2) {}
  BlockPool pool_;
  PrefixIndex index_;
};

TEST_P(PrefixIndexTest, FindsTheLongestCachedPrefix) {
  Cache(pool_, index_, Chain({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(index_.CountCached(Chain({1, 2, 3, 4, 5, 6, 7, 8})), 3);
  EXPECT_EQ(index_.CountCached(Chain({1, 2, 3, 4, 9, 6})), 2);
  EXPECT_EQ(index_.CountCached(Chain({3, 4, 5, 6})), 0);
  EXPECT_EQ(index_.CountCached(Chain({1, 2, 3, 4}, "other tenant")), 0);
}

TEST_P(PrefixIndexTest, HeldBlocksAreNeverEvicted) {
  const std::vector<Hash128> chain = Counting(0, 3);
  const BlockTable held = Cache(pool_, index_, chain);
  Cache(pool_, index_, Counting(100, 2));
  EXPECT_EQ(pool_.retained(), 2);
  while (index_.EvictOne()) {
  }
  EXPECT_EQ(pool_.held(), 3);
  EXPECT_EQ(pool_.free(), 3);
  EXPECT_EQ(index_.CountCached(chain), 3);
}

TEST_P(PrefixIndexTest, AParentIsNeverEvictedBeforeItsChildren) {
  const std::vector<Hash128> chain = Counting(0, 4);
  Cache(pool_, index_, chain);
  for (int64_t left = 4; left > 0; --left) {
    EXPECT_EQ(index_.CountCached(chain), left);
    EXPECT_TRUE(index_.EvictOne());
  }
  EXPECT_FALSE(index_.EvictOne());
}

TEST_P(PrefixIndexTest, EvictionOfBranchesKeepsTheSharedPrefixToTheEnd) {
  const std::vector<Hash128> left = Chain({1, 2, 3, 4, 5, 6});
  const std::vector<Hash128> right = Chain({1, 2, 3, 4, 7, 8});
  Cache(pool_, index_, left);
  {
    BlockTable table;
    index_.Acquire(std::span(right).first(2), table);
    table.Append(pool_.Allocate());
    index_.Insert(right[2], 2, table);
  }
  EXPECT_EQ(pool_.retained(), 4);
  index_.EvictOne();
  index_.EvictOne();
  EXPECT_EQ(index_.CountCached(left), 2);
  EXPECT_EQ(index_.CountCached(right), 2);
}

TEST_P(PrefixIndexTest, ASecondBlockOfTheSameContentIsReplacedByTheFirst) {
  const std::vector<Hash128> chain = Counting(0, 2);
  const BlockTable first = Cache(pool_, index_, chain);
  BlockTable second;
  second.Append(pool_.Allocate());
  const BlockId own = second.id(0);
  BlockRef displaced = index_.Insert(chain[0], 0, second);
  EXPECT_EQ(displaced.id(), own);
  EXPECT_EQ(second.id(0), first.id(0));
  displaced.Reset();
  EXPECT_EQ(pool_.held(), 2);
}

TEST_P(PrefixIndexTest, AnAcquiredIdleBlockIsHeldAgain) {
  const std::vector<Hash128> chain = Counting(0, 3);
  Cache(pool_, index_, chain);
  EXPECT_EQ(index_.CountIdle(chain), 3);
  BlockTable table;
  index_.Acquire(std::span(chain).first(2), table);
  EXPECT_EQ(index_.CountIdle(chain), 1);
  EXPECT_TRUE(index_.EvictOne());
  EXPECT_FALSE(index_.EvictOne());
  EXPECT_EQ(index_.CountCached(chain), 2);
}

TEST_P(PrefixIndexTest, ASnapshotGoesWithItsBlock) {
  const std::vector<Hash128> chain = Counting(0, 1);
  {
    const BlockTable table = Cache(pool_, index_, chain);
    index_.snapshots().Attach(table.id(0), index_.snapshots().Allocate());
  }
  EXPECT_TRUE(index_.HasSnapshot(chain[0]));
  EXPECT_EQ(index_.snapshots().pool().retained(), 1);
  index_.EvictOne();
  EXPECT_EQ(index_.snapshots().pool().free(), 2);
  EXPECT_FALSE(index_.HasSnapshot(chain[0]));
}

TEST_P(PrefixIndexTest, TheLeastRecentlyUsedSnapshotGivesWayToANewOne) {
  SnapshotStore& snapshots = index_.snapshots();
  const std::vector<Hash128> chain = Counting(0, 3);
  const BlockTable table = Cache(pool_, index_, chain);
  snapshots.Attach(table.id(0), snapshots.Allocate());
  snapshots.Attach(table.id(1), snapshots.Allocate());
  snapshots.Acquire(table.id(0)).Reset();
  snapshots.Attach(table.id(2), snapshots.Allocate());
  EXPECT_TRUE(index_.HasSnapshot(chain[0]));
  EXPECT_FALSE(index_.HasSnapshot(chain[1]));
  EXPECT_TRUE(index_.HasSnapshot(chain[2]));
  const SnapshotRef reading = snapshots.Acquire(table.id(0));
  const SnapshotRef writing = snapshots.Allocate();
  EXPECT_TRUE(writing);
  EXPECT_FALSE(snapshots.Allocate()) << "a snapshot that somebody holds was taken away";
}

INSTANTIATE_TEST_SUITE_P(Policies, PrefixIndexTest,
                         testing::Values(EvictionKind::kLru, EvictionKind::kS3Fifo),
                         [](const auto& info) {
                           return info.param == EvictionKind::kLru ? "Lru" : "S3Fifo";
                         });

TEST(LruPolicy, TheLeastRecentlyHeldChainLosesItsTailFirst) {
  BlockPool pool(4);
  PrefixIndex index(pool, EvictionKind::kLru, 0);
  const std::vector<Hash128> old = Counting(0, 2);
  const std::vector<Hash128> fresh = Counting(100, 2);
  Cache(pool, index, old);
  Cache(pool, index, fresh);
  {
    BlockTable table;
    index.Acquire(old, table);  // now `fresh` is the older one
  }
  index.EvictOne();
  EXPECT_EQ(index.CountCached(old), 2);
  EXPECT_EQ(index.CountCached(fresh), 1);
}

TEST(S3FifoPolicy, BlocksUsedAgainOutliveAScanOfBlocksUsedOnce) {
  for (const EvictionKind kind : {EvictionKind::kS3Fifo, EvictionKind::kLru}) {
    BlockPool pool(20);
    PrefixIndex index(pool, kind, 0);
    const std::vector<Hash128> popular = Counting(0, 4);
    Cache(pool, index, popular);
    for (int i = 0; i < 3; ++i) {
      BlockTable table;
      index.Acquire(popular, table);
    }
    for (int32_t i = 1; i <= 50; ++i) Cache(pool, index, Counting(1000 * i, 4));
    EXPECT_EQ(index.CountCached(popular), kind == EvictionKind::kS3Fifo ? 4 : 0);
  }
}

class MatchTest : public testing::Test {
 protected:
  MatchTest() : pool_(16), index_(pool_, EvictionKind::kLru, 4), chain_(Counting(0, 10)) {
    table_ = Cache(pool_, index_, chain_);
    rules_ = {PrefixMode::kFast, kBlockTokens, 6, 3, 0};
  }
  PrefixHit Find(int64_t total, int64_t prompt) const {
    return FindHit(index_, rules_, std::span(chain_).first(total / kBlockTokens), total, prompt);
  }
  BlockPool pool_;
  PrefixIndex index_;
  std::vector<Hash128> chain_;
  BlockTable table_;
  MatchRules rules_;
};

TEST_F(MatchTest, LeavesAtLeastOneTokenToCompute) {
  EXPECT_EQ(Find(20, 20).tokens, 18);
  EXPECT_EQ(Find(19, 19).tokens, 18);
  EXPECT_EQ(Find(18, 18).tokens, 16);
}

TEST_F(MatchTest, HitsBelowTheMinimumAreMisses) {
  EXPECT_EQ(Find(7, 7).tokens, 6);
  EXPECT_EQ(Find(6, 6).tokens, 0);
  EXPECT_EQ(Find(1, 1).tokens, 0);
}

TEST_F(MatchTest, FastHitsReplayTheWindow) {
  EXPECT_EQ(Find(20, 20).start, 15);
  rules_.min_hit_tokens = 2;
  rules_.window_tokens = 8;
  EXPECT_EQ(Find(9, 9).tokens, 0) << "a hit within the window saves nothing";
  EXPECT_EQ(Find(11, 11).tokens, 10);
}

TEST_F(MatchTest, DeterministicHitsEndAtSnapshots) {
  rules_.mode = PrefixMode::kDeterministic;
  EXPECT_EQ(Find(20, 20).tokens, 0);
  index_.snapshots().Attach(table_.id(4), index_.snapshots().Allocate());
  EXPECT_EQ(Find(20, 20).tokens, 10);
  EXPECT_EQ(Find(20, 20).start, 10);
  EXPECT_EQ(Find(10, 10).tokens, 0);
}

TEST_F(MatchTest, TokensThatTheDecoderHalfNeedsAreComputed) {
  rules_.keep_tokens = 7;
  EXPECT_EQ(Find(20, 20).tokens, 16) << "replay starts at 13 = 20 - 7";
  EXPECT_EQ(Find(20, 14).tokens, 10) << "generated tokens do not count";
  EXPECT_EQ(Find(20, 3).tokens, 0);
  rules_.mode = PrefixMode::kOff;
  EXPECT_EQ(Find(20, 20).tokens, 0);
}

}  // namespace
}  // namespace deepinfer::cache
