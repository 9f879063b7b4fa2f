#include "cache/counted_pool.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cache/block_table.h"
#include "cache/pools.h"

namespace deepinfer::cache {
namespace {

TEST(CountedPool, AnIdIsFreeAgainOnlyAfterItsLastHandle) {
  BlockPool pool(1);
  BlockRef first = pool.Allocate();
  BlockRef second = first.Share();
  EXPECT_EQ(second.id(), first.id());
  first.Reset();
  EXPECT_FALSE(pool.Allocate());
  EXPECT_EQ(pool.held(), 1);
  second.Reset();
  EXPECT_EQ(pool.free(), 1);
  EXPECT_TRUE(pool.Allocate());
}

TEST(CountedPool, MovedHandlesAreGivenBackOnce) {
  BlockPool pool(2);
  {
    BlockRef a = pool.Allocate();
    BlockRef b = std::move(a);
    EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): empty is what a moved-from handle promises
    BlockRef c = pool.Allocate();
    c = std::move(b);
    EXPECT_EQ(pool.free(), 1);
    EXPECT_EQ(pool.held(), 1);
  }
  EXPECT_EQ(pool.free(), 2);
}

TEST(CountedPool, AllocatesEveryIdOnceThenNone) {
  BlockPool pool(5);
  std::vector<BlockRef> handles;
  std::vector<int> seen(5, 0);
  while (BlockRef block = pool.Allocate()) {
    ++seen[block.id()];
    handles.push_back(std::move(block));
  }
  EXPECT_EQ(seen, std::vector<int>(5, 1));
}

struct KeepEven final : Retainer<BlockKind> {
  bool Retain(int32_t id) override { return id % 2 == 0; }
};

TEST(CountedPool, RetainedIdsAreNeitherFreeNorHeldUntilTheRetainerFreesThem) {
  KeepEven retainer;
  BlockPool pool(2);
  pool.set_retainer(&retainer);
  pool.Allocate();  // id 0
  EXPECT_EQ(pool.retained(), 1);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_EQ(pool.held(), 0);
  EXPECT_EQ(pool.Allocate().id(), 1);
  {
    BlockRef again = pool.Hold(0);
    EXPECT_EQ(pool.retained(), 0);
  }
  EXPECT_EQ(pool.retained(), 1);
  pool.Free(0);
  EXPECT_EQ(pool.free(), 2);
}

struct Recorder final : Retainer<BlockKind> {
  bool Retain(int32_t id) override {
    order.push_back(id);
    return false;
  }
  std::vector<int32_t> order;
};

TEST(BlockTable, GivesBlocksBackFromTheLastToTheFirst) {
  Recorder recorder;
  BlockPool pool(6);
  pool.set_retainer(&recorder);
  {
    BlockTable table;
    for (int i = 0; i < 3; ++i) table.Append(pool.Allocate());
    BlockTable other;
    for (int i = 0; i < 3; ++i) other.Append(pool.Allocate());
    table = std::move(other);
    EXPECT_EQ(recorder.order, (std::vector<int32_t>{2, 1, 0}));
  }
  EXPECT_EQ(recorder.order, (std::vector<int32_t>{2, 1, 0, 5, 4, 3}));
}

}  // namespace
}  // namespace deepinfer::cache
