#include "chat/utf8_repair.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace deepinfer {
namespace {

std::string Repair(const std::vector<std::string>& pieces) {
  Utf8Repair repair;
  std::string out;
  for (const std::string& piece : pieces) repair.Push(piece, out);
  repair.Finish(out);
  return out;
}

TEST(Utf8Repair, ValidTextPassesUnchanged) {
  const std::string text = "a é 日 😀 \x7f \xef\xbf\xbf \xf4\x8f\xbf\xbf \xed\x9f\xbf \xee\x80\x80";
  EXPECT_EQ(Repair({text}), text);
}

TEST(Utf8Repair, EveryMaximalBeginningIsOneReplacement) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x80", "�"},
      {"\xff", "�"},
      {"\xc0\xaf", "��"},  // no character begins with c0
      {"\xc3", "�"},
      {"\xc3(", "�("},
      {"\xe2\x82", "�"},
      {"\xe2\x82z", "�z"},
      {"\xe0\x80\x80", "���"},  // overlong
      {"\xed\xa0\x80", "���"},  // surrogate
      {"\xf0\x9f\x99", "�"},
      {"\xf0\x80\x80\x80", "����"},
      {"\xf4\x90\x80\x80", "����"},  // beyond U+10FFFF
      {"\xe2\x82\xe2\x82\xac", "�€"},
  };
  for (const auto& [bytes, expected] : cases) {
    EXPECT_EQ(Repair({bytes}), expected);
    std::vector<std::string> single;
    for (const char c : bytes) single.emplace_back(1, c);
    EXPECT_EQ(Repair(single), expected);
  }
}

TEST(Utf8Repair, HoldsACharacterUntilItIsWhole) {
  Utf8Repair repair;
  std::string out;
  repair.Push("a\xf0\x9f", out);
  EXPECT_EQ(out, "a");
  Utf8Repair fork = repair;
  repair.Push("\x99\x82", out);
  EXPECT_EQ(out, "a🙂");
  std::string fork_out;
  fork.Finish(fork_out);
  EXPECT_EQ(fork_out, "�");
}

}  // namespace
}  // namespace deepinfer
