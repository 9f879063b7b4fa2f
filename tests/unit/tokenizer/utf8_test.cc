#include "tokenizer/utf8.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace deepinfer {
namespace {

// Written out instead of computed: what String::from_utf8_lossy and the WHATWG decoder give.
TEST(RepairUtf8Test, EachMaximalInvalidPartBecomesOneReplacementCharacter) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"plain", "plain"},
      {"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", "é中😀"},
      {"a\x80"
       "b",
       "a\ufffdb"},
      {"\xc0\xaf", "\ufffd\ufffd"},                      // overlong
      {"\xe0\x80\xaf", "\ufffd\ufffd\ufffd"},            // overlong
      {"\xf0\x80\x80\xaf", "\ufffd\ufffd\ufffd\ufffd"},  // overlong
      {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},            // surrogate
      {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},  // above U+10FFFF
      {"\xf5\xff", "\ufffd\ufffd"},
      {"\xe4\xb8", "\ufffd"},  // truncated at the end
      {"\xf0\x9f\x98", "\ufffd"},
      {"\xe4\xb8x", "\ufffdx"},  // cut off by another character
      {"\xf0\x9f\xe4\xb8\xad", "\ufffd中"},
      {"\xe4\xe4\xb8\xad", "\ufffd中"},
      {"\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64",
       "\ufffd\ufffd\ufffdb\ufffdc\ufffd\ufffdd"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(RepairUtf8(bytes), text) << text;
}

TEST(AppendRepairedTest, LeavesOutExactlyTheTruncatedEnd) {
  for (const auto& [bytes, held] : std::vector<std::pair<std::string, size_t>>{
           {"a", 0}, {"a\xc3", 1}, {"a\xe4\xb8", 2}, {"a\xf0\x9f\x98", 3}, {"a\x80", 0}}) {
    std::string out;
    EXPECT_EQ(AppendRepaired(bytes, out), held);
    EXPECT_EQ(out, held != 0 ? "a" : RepairUtf8(bytes));
  }
}

TEST(Utf8Test, EveryCodePointIsWrittenAndReadBack) {
  for (uint32_t c = 0; c <= 0x10ffff; ++c) {
    std::string text;
    AppendUtf8(c, text);
    const Utf8Step step = ReadUtf8(text, 0);
    const bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
    ASSERT_EQ(step.status == Utf8Status::kValid, !is_surrogate) << c;
    if (!is_surrogate) {
      ASSERT_EQ(step.code_point, c);
      ASSERT_EQ(step.length, text.size());
    }
  }
}

}  // namespace
}  // namespace deepinfer
