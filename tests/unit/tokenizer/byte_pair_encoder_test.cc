#include "tokenizer/byte_pair_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace deepinfer {
namespace {

std::array<int32_t, 256> IdentityBytes() {
  std::array<int32_t, 256> tokens;
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// The definition: merge the leftmost pair of the smallest rank until none is left.
std::vector<int32_t> MergeSlowly(const std::vector<MergeRule>& rules, const std::string& piece) {
  std::map<std::pair<int32_t, int32_t>, size_t> ranks;
  for (size_t i = 0; i < rules.size(); ++i) ranks[{rules[i].left, rules[i].right}] = i;
  std::vector<int32_t> ids;
  for (const char c : piece) ids.push_back(static_cast<uint8_t>(c));
  while (true) {
    size_t best_rank = rules.size();
    size_t best = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto it = ranks.find({ids[i], ids[i + 1]});
      if (it != ranks.end() && it->second < best_rank) {
        best_rank = it->second;
        best = i;
      }
    }
    if (best_rank == rules.size()) return ids;
    ids[best] = rules[best_rank].merged;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

// Random merges over an alphabet of three bytes, among them merges of merges; every string has one
// token, as in a vocabulary.
std::vector<MergeRule> RandomRules(std::mt19937& random, size_t count) {
  std::map<std::string, int32_t> vocab = {{"a", 'a'}, {"b", 'b'}, {"c", 'c'}};
  std::vector<std::string> strings = {"a", "b", "c"};
  std::vector<MergeRule> rules;
  while (rules.size() < count) {
    const std::string left = strings[random() % strings.size()];
    const std::string right = strings[random() % strings.size()];
    const auto [it, is_new] =
        vocab.emplace(left + right, static_cast<int32_t>(1000 + vocab.size()));
    if (is_new) strings.push_back(left + right);
    rules.push_back({vocab[left], vocab[right], it->second});
  }
  return rules;
}

TEST(BytePairEncoderTest, MergesLikeTheDefinitionOnShortAndLongPieces) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const auto rules = RandomRules(random, random() % 40);
    const BytePairEncoder encoder(IdentityBytes(), rules);
    for (const size_t size : {1, 2, 3, 5, 9, 17, 33, 47, 48, 49, 63, 64, 65, 150}) {
      std::string piece(size, 'a');
      for (char& c : piece) c = static_cast<char>('a' + random() % 3);
      std::vector<int32_t> ids = {-7};
      encoder.Encode(piece, ids);
      ASSERT_EQ(ids.front(), -7) << "earlier ids must be kept";
      ids.erase(ids.begin());
      ASSERT_EQ(ids, MergeSlowly(rules, piece)) << piece;
    }
  }
}

TEST(BytePairEncoderTest, OfTwoRulesForOnePairTheLastCounts) {
  const std::vector<MergeRule> rules = {{'a', 'b', 300}, {'b', 'c', 301}, {'a', 'b', 300}};
  std::vector<int32_t> ids;
  BytePairEncoder(IdentityBytes(), rules).Encode("abc", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{'a', 301}));
}

// A quadratic method would need 10^12 steps here.
TEST(BytePairEncoderTest, AMegabyteInOnePieceIsNoTrouble) {
  std::vector<MergeRule> rules = {{'a', 'a', 256}};
  for (int32_t id = 256; id < 266; ++id) rules.push_back({id, id, id + 1});
  std::vector<int32_t> ids;
  BytePairEncoder(IdentityBytes(), rules).Encode(std::string(size_t{1} << 20, 'a'), ids);
  EXPECT_EQ(ids, std::vector<int32_t>((size_t{1} << 20) / 2048, 266));
}

TEST(BytePairEncoderTest, LargestIdsAndAnEmptyPieceAreFine) {
  constexpr int32_t kLargest = (1 << 24) - 1;
  auto bytes = IdentityBytes();
  bytes['z'] = kLargest;
  const std::vector<MergeRule> rules = {{kLargest, kLargest, kLargest - 1}};
  const BytePairEncoder encoder(bytes, rules);
  std::vector<int32_t> ids;
  encoder.Encode("", ids);
  EXPECT_TRUE(ids.empty());
  encoder.Encode("zzz", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{kLargest - 1, kLargest}));
}

}  // namespace
}  // namespace deepinfer
