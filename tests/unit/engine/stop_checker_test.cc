#include "engine/stop_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const StopStrings> Stops(const std::vector<std::string>& stops) {
  return std::make_shared<const StopStrings>(StopStrings::Create(stops).value());
}

// What each piece gives out; the last entry is what Finish adds, if it is called.
std::vector<std::string> Outputs(const std::vector<std::string>& stops,
                                 const std::vector<std::string>& pieces) {
  StopChecker checker(Stops(stops));
  std::vector<std::string> out;
  for (const std::string& piece : pieces) {
    if (checker.Push(piece, out.emplace_back())) return out;
  }
  checker.Finish(out.emplace_back());
  return out;
}

TEST(StopChecker, HoldsBackOnlyWhatMayBeginAStopString) {
  EXPECT_THAT(Outputs({"END"}, {"abE", "N", "x", "EN"}), ElementsAre("ab", "", "ENx", "", "EN"));
  EXPECT_THAT(Outputs({"aab"}, {"aaa", "a", "b", "never"}), ElementsAre("a", "a", ""));
  EXPECT_THAT(Outputs({}, {"any", "thing"}), ElementsAre("any", "thing", ""));
}

TEST(StopChecker, StopStringsAreExcludedAcrossTokenBorders) {
  EXPECT_THAT(Outputs({"\n\nUser:"}, {"Hi.\n", "\nUs", "er: more"}), ElementsAre("Hi.", "", ""));
  EXPECT_THAT(Outputs({"b"}, {"abc"}), ElementsAre("a"));
}

// The text before a shorter stop string inside the beginning of a longer one must still come out.
TEST(StopChecker, TheFirstToEndWinsAndThenTheLongest) {
  EXPECT_THAT(Outputs({"abcd", "bc"}, {"ab", "cd"}), ElementsAre("", "a"));
  EXPECT_THAT(Outputs({"c", "bc", "abc"}, {"xabc"}), ElementsAre("x"));
  EXPECT_THAT(Outputs({"ab", "abc"}, {"abc"}), ElementsAre(""));
  StopChecker checker(Stops({"c", "bc", "bc"}));
  std::string out;
  EXPECT_TRUE(checker.Push("abc", out));
  EXPECT_EQ(checker.stop(), 1);
}

TEST(StopChecker, CharactersOfSeveralBytesAreNeverCut) {
  // Both begin with the bytes e3 81.
  EXPECT_THAT(Outputs({"あ"}, {"い", "う", "xあ"}), ElementsAre("い", "う", "x"));
}

TEST(StopChecker, EmptyAndBrokenStringsAreRefusedByTheirPlace) {
  const std::vector<std::string> empty = {"a", ""};
  EXPECT_THAT(StopStrings::Create(empty).error().message, HasSubstr("string 1 of stop is empty"));
  for (const char* bad : {"\x81", "\xe3\x81", "a\xff"}) {
    const std::vector<std::string> stops = {bad};
    EXPECT_THAT(StopStrings::Create(stops).error().message,
                HasSubstr("string 0 of stop is not valid UTF-8"));
  }
}

// The first end of any stop string, found by comparing at every place.
std::string NaiveOutput(const std::vector<std::string>& stops, const std::string& text,
                        bool& stopped) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) {
      stopped = true;
      return text.substr(0, end - longest);
    }
  }
  stopped = false;
  return text;
}

// Characters of 1, 2 and 3 bytes of a small alphabet, so that strings overlap often.
std::vector<std::string> RandomCharacters(std::mt19937& random, size_t count) {
  static const std::string kAlphabet[] = {"a", "b", "é", "è", "あ", "い"};
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.push_back(kAlphabet[random() % 6]);
  return out;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}

TEST(StopChecker, AgreesWithANaiveSearchHoweverTheTextIsCut) {
  std::mt19937 random(3);
  int stops_seen = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = random() % 5; i > 0; --i) {
      stops.push_back(Join(RandomCharacters(random, 1 + random() % 5)));
    }
    const std::vector<std::string> text = RandomCharacters(random, random() % 40);
    bool expected_stop = false;
    const std::string expected = NaiveOutput(stops, Join(text), expected_stop);
    StopChecker checker(Stops(stops));
    std::string out;
    bool stopped = false;
    for (size_t at = 0; at < text.size() && !stopped;) {
      const size_t end = std::min(text.size(), at + random() % 5);
      stopped = checker.Push(Join({text.begin() + static_cast<std::ptrdiff_t>(at),
                                   text.begin() + static_cast<std::ptrdiff_t>(end)}),
                             out);
      EXPECT_EQ(out, RepairUtf8(out));
      at = end;
    }
    if (!stopped) checker.Finish(out);
    ASSERT_EQ(out, expected) << "round " << round;
    ASSERT_EQ(stopped, expected_stop) << "round " << round;
    stops_seen += stopped ? 1 : 0;
  }
  EXPECT_GT(stops_seen, 5000);
}

// The largest list a request may have, every string almost matching everywhere.
TEST(StopChecker, TheLargestListHoldsBackNoMoreThanOneString) {
  std::vector<std::string> stops;
  for (int i = 0; i < 64; ++i) {
    stops.push_back(std::string(255, 'a') + static_cast<char>('A' + i % 26));
    if (i > 0) stops.back()[static_cast<size_t>(i)] = 'b';
  }
  StopChecker checker(Stops(stops));
  std::string out;
  const std::string text(1 << 20, 'a');
  EXPECT_FALSE(checker.Push(text, out));
  EXPECT_EQ(checker.held_bytes(), 255u);
  checker.Finish(out);
  EXPECT_EQ(out, text);
}

}  // namespace
}  // namespace deepinfer
