#include "model/v41/engram_hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace deepinfer::model::v41 {
namespace {

using ::testing::HasSubstr;

// Two tables, 3-grams, two heads; primes from 10: 11 13 17 19 | 23 29 31 37.
ModelConfig TinyConfig() {
  ModelConfig config;
  config.vocab_size = 50;
  config.engram_layers = {0, 3};
  config.engram_num_embeddings = {60, 120};
  config.engram_max_ngram = 3;
  config.engram_vocab_size = 10;
  config.engram_heads = 2;
  config.engram_pad_token = 2;
  config.engram_compressed_vocab_size = 40;
  return config;
}

std::vector<int32_t> TinyMap() {
  std::vector<int32_t> map(50);
  for (int32_t id = 0; id < 50; ++id) map[id] = id < 40 ? 39 - id : id - 40;
  return map;
}

std::vector<int64_t> RowsOf(const EngramHash& hash, int table, std::vector<int32_t> recent) {
  std::vector<int64_t> rows(4, -1);
  hash.Rows(table, recent, rows.data());
  return rows;
}

class EngramHashTest : public ::testing::Test {
 protected:
  EngramHash hash_ = EngramHash::Create(TinyConfig(), TinyMap()).value();
  int32_t pad_ = TinyMap()[2];
};

TEST_F(EngramHashTest, TokensGoThroughTheMap) {
  EXPECT_EQ(hash_.Compress(0), 39);
  EXPECT_EQ(hash_.Compress(49), 9);
}

TEST_F(EngramHashTest, RowsAreTheHashOfTheNgramInTheColumnsOwnRange) {
  const std::vector<int64_t>& m = hash_.multipliers(1);
  ASSERT_EQ(hash_.primes(1), (std::vector<int64_t>{23, 29, 31, 37}));
  const int64_t pair = (5 * m[0]) ^ (6 * m[1]), triple = pair ^ (7 * m[2]);
  EXPECT_EQ(RowsOf(hash_, 1, {5, 6, 7}),
            (std::vector<int64_t>{pair % 23, 23 + pair % 29, 52 + triple % 31, 83 + triple % 37}));
}

TEST_F(EngramHashTest, RowsStayInsideTheTable) {
  for (int32_t a = 0; a < 40; ++a) {
    for (int table = 0; table < 2; ++table) {
      const int64_t total = table == 0 ? 60 : 120;
      for (const int64_t row : RowsOf(hash_, table, {a, 39 - a, (a * 7) % 40})) {
        ASSERT_GE(row, 0);
        ASSERT_LT(row, total);
      }
    }
  }
}

TEST_F(EngramHashTest, BeforeTheStartStandsThePadToken) {
  EXPECT_EQ(RowsOf(hash_, 0, {5, kDeadToken, kDeadToken}), RowsOf(hash_, 0, {5, pad_, pad_}));
}

TEST_F(EngramHashTest, ADeadTokenHidesAllThatStandsBeforeIt) {
  EXPECT_EQ(RowsOf(hash_, 0, {5, kDeadToken, 7}), RowsOf(hash_, 0, {5, pad_, pad_}));
  EXPECT_EQ(RowsOf(hash_, 0, {5, 6, kDeadToken}), RowsOf(hash_, 0, {5, 6, pad_}));
}

TEST_F(EngramHashTest, ADeadTokenItselfHashesAsPad) {
  EXPECT_EQ(RowsOf(hash_, 1, {kDeadToken, 6, 7}), RowsOf(hash_, 1, {pad_, pad_, pad_}));
}

TEST_F(EngramHashTest, TablesHaveTheirOwnMultipliers) {
  EXPECT_NE(hash_.multipliers(0), hash_.multipliers(1));
  for (const int64_t m : hash_.multipliers(0)) EXPECT_EQ(m % 2, 1);
}

TEST(EngramHashCreate, AMapOfAnotherSizeIsRefused) {
  std::vector<int32_t> map = TinyMap();
  map.pop_back();
  const auto hash = EngramHash::Create(TinyConfig(), map);
  ASSERT_FALSE(hash);
  EXPECT_EQ(hash.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(hash.error().message, HasSubstr("49"));
  EXPECT_THAT(hash.error().message, HasSubstr("50"));
}

TEST(EngramHashCreate, AnIdOutsideTheCompressedVocabularyIsRefused) {
  for (const int32_t bad : {-1, 40}) {
    std::vector<int32_t> map = TinyMap();
    map[17] = bad;
    const auto hash = EngramHash::Create(TinyConfig(), map);
    ASSERT_FALSE(hash);
    EXPECT_THAT(hash.error().message, HasSubstr(std::to_string(bad)));
    EXPECT_THAT(hash.error().message, HasSubstr("token 17"));
  }
}

TEST(EngramHashCreate, TableSizesThatThePrimesDoNotSumToAreRefused) {
  ModelConfig config = TinyConfig();
  config.engram_num_embeddings[1] = 121;
  const auto hash = EngramHash::Create(config, TinyMap());
  ASSERT_FALSE(hash);
  EXPECT_THAT(hash.error().message, HasSubstr("engram_num_embeddings[1]"));
  EXPECT_THAT(hash.error().message, HasSubstr("121"));
  EXPECT_THAT(hash.error().message, HasSubstr("120"));
}

TEST(EngramHashCreate, AModelWithoutEngramNeedsNoMap) {
  EXPECT_TRUE(EngramHash::Create(ModelConfig{}, {}));
}

}  // namespace
}  // namespace deepinfer::model::v41
