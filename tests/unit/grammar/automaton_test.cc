#include "grammar/automaton.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grammar/unicode_property.h"
#include "grammar/utf8.h"

namespace deepinfer::grammar {
namespace {

TEST(Automaton, Utf8LoweringTakesExactlyTheSet) {
  for (const CharSet& set :
       {CharSet::Any(), CharSet{{'"', '"'}}.Complement(), CharSet{{0x7f, 0x801}},
        CharSet{{0xfff0, 0x10010}}, *UnicodeProperty("Lu"), CharSet{{0xd7f0, 0xe010}}}) {
    Budget budget{Limits()};
    const auto dfa = EncodeUtf8(SetDfa(set), budget);
    ASSERT_TRUE(dfa.has_value());
    for (uint32_t c = 0; c <= kMaxCodePoint; c += c < 0x11000 ? 1 : 97) {
      if (c >= 0xd800 && c <= 0xdfff) continue;
      std::string bytes;
      AppendUtf8(c, bytes);
      ASSERT_EQ(dfa->Accepts(bytes), set.Contains(c)) << c;
    }
    for (const char* bytes : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82"}) {
      EXPECT_FALSE(dfa->Accepts(bytes));
    }
  }
}

TEST(Automaton, AlgebraOfSmallLanguages) {
  Budget budget{Limits()};
  const CharSet ab{{'a', 'b'}};
  const Dfa star = StarDfa(ab);
  const Dfa words[] = {WordDfa("ab"), WordDfa("a"), EmptyWordDfa()};
  const Dfa all = *Union(words, budget);
  EXPECT_TRUE(all.Accepts("") && all.Accepts("a") && all.Accepts("ab"));
  EXPECT_FALSE(all.Accepts("b"));
  const Dfa others = *Difference(star, all, budget);
  EXPECT_FALSE(others.Accepts("a"));
  EXPECT_TRUE(others.Accepts("aba"));
  EXPECT_TRUE(Intersect(others, all, budget)->empty());
  EXPECT_FALSE(*Intersects(others, all, budget));
  const Dfa pairs = *Repeat(all, 2, 2, budget);
  EXPECT_TRUE(pairs.Accepts("abab") && pairs.Accepts("aab") && pairs.Accepts(""));
  EXPECT_FALSE(pairs.Accepts("ababa"));
  const Dfa sized = *WithLength(star, 2, 3, budget);
  EXPECT_FALSE(sized.Accepts("a") || sized.Accepts("aaaa"));
  EXPECT_TRUE(sized.Accepts("ab") && sized.Accepts("bab"));
  EXPECT_TRUE(WithLength(star, 2, kUnbounded, budget)->Accepts("abababab"));
  const Dfa parts[] = {sized, WordDfa("!")};
  EXPECT_TRUE(Concat(parts, budget)->Accepts("ab!"));
}

TEST(Automaton, MinimiseMergesLoopsAndTails) {
  Budget budget{Limits()};
  // x+ y as x x* y: three states.
  const Dfa parts[] = {WordDfa("x"), StarDfa(CharSet::Of('x')), WordDfa("y")};
  EXPECT_EQ(Concat(parts, budget)->num_states(), 3u);
  const Dfa tails[] = {WordDfa("axyz"), WordDfa("bxyz"), WordDfa("cxyz")};
  EXPECT_EQ(Union(tails, budget)->num_states(), 5u);
}

TEST(Automaton, LimitsAreNamed) {
  Limits limits;
  limits.max_states = 100;
  Budget budget(limits);
  const auto result = Repeat(WordDfa("ab"), 1000, 1000, budget);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("more than 100 states"));
}

}  // namespace
}  // namespace deepinfer::grammar
