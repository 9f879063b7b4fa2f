#include "spec/cost_table.h"

#include <gtest/gtest.h>

#include <limits>

namespace deepinfer::spec {
namespace {

CostTable Table() {
  return {.device = "a device",
          .verify = *CostCurve::Create({{1, 0.1}, {8, 0.1}, {16, 0.30000000000000004}}, 8),
          .draft = *CostCurve::Create({{1, 0.01}, {64, 0.02}})};
}

TEST(CostCurve, InterpolatesBetweenPointsAndGoesOnWithTheLastSlope) {
  const CostCurve curve = *CostCurve::Create({{2, 1.0}, {4, 2.0}, {8, 2.5}});
  EXPECT_EQ(curve.At(0), 0);
  EXPECT_EQ(curve.At(1), 1.0);
  EXPECT_EQ(curve.At(3), 1.5);
  EXPECT_EQ(curve.At(4), 2.0);
  EXPECT_EQ(curve.At(6), 2.25);
  EXPECT_EQ(curve.At(16), 3.5);
  EXPECT_EQ(CostCurve::Create({{4, 2.0}})->At(8), 4.0);
}

// Sizes up to the largest captured graph are padded; no size above it is priced as a mixture of a
// graph and what runs without one.
TEST(CostCurve, PaddedCountsCostWhatTheNextPointDoes) {
  const CostCurve curve =
      *CostCurve::Create({{1, 1.0}, {4, 2.0}, {8, 3.0}, {12, 7.0}, {16, 9.0}}, 8);
  for (const auto& [count, seconds] : {std::pair<int64_t, double>{1, 1},
                                       {2, 2},
                                       {4, 2},
                                       {5, 3},
                                       {8, 3},
                                       {9, 7},
                                       {12, 7},
                                       {14, 8},
                                       {20, 11}}) {
    EXPECT_EQ(curve.At(count), seconds) << count;
  }
}

TEST(CostCurve, SamplesGiveMediansThatNeverFall) {
  const CostCurve curve =
      *CostCurve::FromSamples({{{4, 9.0}, {1, 1.0}, {4, 2.0}, {2, 3.0}, {4, 2.5}, {8, 2.75}}});
  const std::vector<CostPoint> want = {{1, 1.0}, {2, 3.0}, {4, 3.0}, {8, 3.0}};
  EXPECT_EQ(curve.points(), want);
}

TEST(CostCurve, RefusesWhatIsNoCost) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(CostCurve::Create({}));
  EXPECT_FALSE(CostCurve::FromSamples({}));
  EXPECT_FALSE(CostCurve::Create({{0, 1.0}}));
  EXPECT_FALSE(CostCurve::Create({{2, 1.0}, {2, 1.0}}));
  EXPECT_FALSE(CostCurve::Create({{1, 2.0}, {2, 1.0}}));
  EXPECT_FALSE(CostCurve::Create({{1, 0.0}}));
  EXPECT_FALSE(CostCurve::Create({{1, nan}}));
  EXPECT_FALSE(CostCurve::Create({{1, 1.0}, {2, infinity}}));
  EXPECT_FALSE(CostCurve::Create({{1, 1.0}}, 2));
  EXPECT_FALSE(CostCurve::FromSamples({{{1, nan}}}));
}

TEST(CostTableJson, ReadsBackWhatItWrote) {
  const auto read = ParseCostTable(CostTableJson(Table()), "a device");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, Table());
}

TEST(CostTableJson, RefusalsNameTheMember) {
  const std::string text = CostTableJson(Table());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return changed.replace(at, from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "an object"},
      {"{", "the cost table"},
      {with("\"version\":1", "\"version\":2"), "\"version\" is 2"},
      {with("\"version\":1", "\"version\":1.0"), "\"version\" is 1.0"},
      {with("deepinfer-step-costs", "another"), "\"format\""},
      {with("a device", "another"), "\"device\" is \"another\""},
      {with("\"draft\"", "\"drafts\""), "no member \"draft\""},
      {with("\"version\"", "\"extra\":0,\"version\""), "unknown member \"extra\""},
      {with("\"padded_until\":8", "\"padded_until\":7"), "padded_until 7"},
      {with("\"padded_until\":8", "\"padded_until\":-1"), "\"padded_until\" is -1"},
      {with("[1,0.1]", "[1,-0.1]"), "-0.1 seconds"},
      {with("[1,0.1]", "[1]"), "\"points\" is [1]"},
      {with("[1,0.1]", "[1.5,0.1]"), "\"points\" is 1.5"}};
  for (const auto& [bad, words] : cases) {
    const auto read = ParseCostTable(bad, "a device");
    ASSERT_FALSE(read) << bad;
    EXPECT_NE(read.error().message.find(words), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace deepinfer::spec
