#include "engine/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

TEST(Text, ValidTextOfEveryLengthPasses) {
  EXPECT_TRUE(RequireUtf8("", "x"));
  EXPECT_TRUE(RequireUtf8("a\xC2\x80\xE4\xBD\xA0\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF", "x"));
}

TEST(Text, TheFirstBrokenByteIsNamedByOffsetAndValue) {
  const Status status = RequireUtf8("abc\xFFz", "the prompt");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("the prompt is not valid UTF-8"));
  EXPECT_THAT(status.error().message, HasSubstr("byte 0xFF at offset 3"));
}

TEST(Text, OverlongFormsSurrogatesAndCutCharactersAreBroken) {
  for (std::string_view bad : {"\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                               "\xE4\xBD", "\x80", "\xF0\x9F\x98"}) {
    EXPECT_EQ(FindInvalidUtf8(std::string("ok") + std::string(bad)), 2u);
  }
}

}  // namespace
}  // namespace deepinfer
