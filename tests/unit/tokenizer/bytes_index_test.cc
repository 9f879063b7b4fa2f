#include "tokenizer/bytes_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "tokenizer/byte_alphabet.h"

namespace deepinfer {
namespace {

TEST(BytesIndexTest, AgreesWithAnOrderedMapWhileItGrows) {
  std::mt19937 random(1);
  BytesIndex index;
  std::map<std::string, int32_t> expected;
  for (int i = 0; i < 20000; ++i) {
    std::string key(random() % 4, '\0');
    for (char& c : key) c = static_cast<char>(random() % 20);
    const auto [it, is_new] = expected.emplace(key, static_cast<int32_t>(expected.size()));
    const auto insertion = index.Insert(key);
    ASSERT_EQ(insertion.index, it->second);
    ASSERT_EQ(insertion.is_new, is_new);
  }
  ASSERT_EQ(index.size(), static_cast<int32_t>(expected.size()));
  for (const auto& [key, number] : expected) {
    EXPECT_EQ(index.Find(key), number);
    EXPECT_EQ(index.Key(number), key);
  }
  EXPECT_EQ(index.Find("\x30"), std::nullopt);
}

TEST(ByteAlphabetTest, SpellsAllBytesAndReadsThemBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  const std::string spelling = SpellingOfBytes(bytes);
  EXPECT_EQ(BytesOfSpelling(spelling), bytes);
  EXPECT_EQ(SpellingOfBytes(" \n\t\x7f\xad~"), "ĠĊĉġŃ~");
  EXPECT_EQ(BytesOfSpelling("a b"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("中"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("ń"), std::nullopt);  // U+0144, one beyond the last
  EXPECT_EQ(BytesOfSpelling("\xff"), std::nullopt);
}

}  // namespace
}  // namespace deepinfer
