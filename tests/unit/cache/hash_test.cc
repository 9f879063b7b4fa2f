#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "cache/hash_chain.h"
#include "cache/hash_index.h"

namespace deepinfer::cache {
namespace {

TEST(HashChain, DependsOnEveryTokenBeforeItsEndAndOnTheSalt) {
  const std::vector<int32_t> tokens{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<Hash128> chain;
  ExtendChain(NamespaceHash(""), tokens, 2, chain);
  ASSERT_EQ(chain.size(), 4u);
  for (int64_t changed = 0; changed < 8; ++changed) {
    std::vector<int32_t> other = tokens;
    other[changed] += 1 << 20;
    std::vector<Hash128> other_chain;
    ExtendChain(NamespaceHash(""), other, 2, other_chain);
    for (int64_t block = 0; block < 4; ++block) {
      EXPECT_EQ(other_chain[block] == chain[block], block < changed / 2) << changed << " " << block;
    }
  }
  std::vector<Hash128> salted;
  ExtendChain(NamespaceHash("tenant"), tokens, 2, salted);
  for (int64_t block = 0; block < 4; ++block) EXPECT_NE(salted[block], chain[block]);
}

TEST(HashChain, GrowsByFullBlocksWhateverTheSteps) {
  const std::vector<int32_t> tokens{5, 5, 5, 5, 5, 5, 5};
  std::vector<Hash128> at_once;
  ExtendChain(NamespaceHash("s"), tokens, 3, at_once);
  EXPECT_EQ(at_once.size(), 2u);
  std::vector<Hash128> stepwise;
  for (size_t n = 0; n <= tokens.size(); ++n) {
    ExtendChain(NamespaceHash("s"), std::span(tokens).first(n), 3, stepwise);
  }
  EXPECT_EQ(stepwise, at_once);
}

TEST(HashChain, EqualBlocksAtDifferentPlacesDiffer) {
  const std::vector<int32_t> tokens{9, 9, 9, 9};
  std::vector<Hash128> chain;
  ExtendChain(NamespaceHash(""), tokens, 2, chain);
  EXPECT_NE(chain[0], chain[1]);
}

// Keys whose homes collide, at the table's end too, so that erasing has runs to close.
TEST(HashIndex, AgreesWithAMapUnderRandomInsertionsAndErasures) {
  constexpr int64_t kCapacity = 16;
  HashIndex index(kCapacity);
  std::unordered_map<uint64_t, int32_t> expected;
  for (uint64_t step = 0; step < 20000; ++step) {
    const uint64_t bits = RandomBits(1, step);
    const uint64_t name = bits % 40;
    const Hash128 key{name % 5 + 29, name};
    if (expected.contains(name)) {
      if (bits >> 63) {
        index.Erase(key);
        expected.erase(name);
      }
    } else if (std::ssize(expected) < kCapacity) {
      index.Insert(key, static_cast<int32_t>(step));
      expected[name] = static_cast<int32_t>(step);
    } else {
      index.Erase(key);  // absent: nothing happens
    }
    for (uint64_t other = 0; other < 40; ++other) {
      const auto found = expected.find(other);
      ASSERT_EQ(index.Find({other % 5 + 29, other}), found == expected.end() ? -1 : found->second);
    }
  }
}

}  // namespace
}  // namespace deepinfer::cache
