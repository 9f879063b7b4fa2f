#include "spec/calibration.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace deepinfer::spec {
namespace {

TEST(CalibrationBins, EceIsTheMeanGapOfTheBins) {
  CalibrationBins bins;
  EXPECT_EQ(bins.Ece(), 0);
  for (int i = 0; i < 10; ++i) bins.Add(0.82, i < 8);  // gap 0.02
  for (int i = 0; i < 30; ++i) bins.Add(0.31, i < 6);  // gap 0.11
  bins.Add(1, true);                                   // the last bin is closed
  EXPECT_EQ(bins.count(), 41);
  EXPECT_NEAR(bins.Ece(), (10 * 0.02 + 30 * 0.11) / 41, 1e-12);
  CalibrationBins twice = bins;
  twice.Merge(bins);
  EXPECT_EQ(twice.count(), 82);
  EXPECT_NEAR(twice.Ece(), bins.Ece(), 1e-12);
}

TEST(Auc, CountsPairsInTheRightOrder) {
  const std::array<double, 4> p = {0.9, 0.4, 0.6, 0.1};
  EXPECT_EQ(Auc(p, std::array{true, false, true, false}), 1);
  EXPECT_EQ(Auc(p, std::array{false, true, false, true}), 0);
  EXPECT_EQ(Auc(p, std::array{true, true, false, false}), 0.75);
  EXPECT_EQ(Auc(std::array{0.5, 0.5}, std::array{true, false}), 0.5);
  EXPECT_EQ(Auc(p, std::array{true, true, true, true}), 0.5);
}

TEST(TemperatureTable, SurvivalIsTheProductOfTheScaledSigmoids) {
  const TemperatureTable table = *TemperatureTable::Create({1, 2, 0.5});
  const std::array<float, 3> raw = {1.5f, -0.5f, 40.0f};
  std::array<double, 3> out{};
  table.Survival(raw, out);
  const double first = 1 / (1 + std::exp(-1.5)), second = 1 / (1 + std::exp(0.25));
  EXPECT_NEAR(out[0], first, 1e-6);
  EXPECT_NEAR(out[1], first * second, 1e-6);
  EXPECT_EQ(out[2], out[1]);
}

TEST(TemperatureTable, ABrokenConfidenceEndsSurvival) {
  std::array<double, 3> out{};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  TemperatureTable::Identity(3).Survival(std::array{1.0f, nan, 5.0f}, out);
  EXPECT_GT(out[0], 0.7);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[2], 0);
}

// Rounds whose drafts are accepted with the chance sigmoid(raw / temperature).
std::vector<CalibrationRound> Rounds(const std::vector<double>& temperatures, int count) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<float> normal(1.0f, 2.0f);
  std::vector<CalibrationRound> rounds;
  for (int i = 0; i < count; ++i) {
    CalibrationRound round{.confidence = {}, .verified = std::ssize(temperatures)};
    bool alive = true;
    for (const double temperature : temperatures) {
      round.confidence.push_back(normal(random));
      alive = alive &&
              uniform(random) < 1 / (1 + std::exp(-double{round.confidence.back()} / temperature));
      round.accepted += alive ? 1 : 0;
    }
    rounds.push_back(round);
  }
  return rounds;
}

double EceOf(std::span<const CalibrationRound> rounds, const TemperatureTable& table) {
  CalibrationBins bins;
  std::vector<double> survival(static_cast<size_t>(table.block_size()));
  for (const CalibrationRound& round : rounds) {
    table.Survival(round.confidence, survival);
    for (size_t k = 0; k < survival.size(); ++k) {
      bins.Add(survival[k], round.accepted > static_cast<int64_t>(k));
    }
  }
  return bins.Ece();
}

TEST(FitTemperatures, FindsTheTemperaturesOfTheOutcomes) {
  const std::vector<double> truth = {2.5, 1.0, 0.6};
  const auto rounds = Rounds(truth, 40000);
  const TemperatureTable table = *FitTemperatures(rounds, 3);
  for (size_t k = 0; k < truth.size(); ++k) {
    EXPECT_NEAR(std::log(table.temperatures()[k] / truth[k]), 0, 0.25) << k;
  }
  const double raw = EceOf(rounds, TemperatureTable::Identity(3));
  EXPECT_GT(raw, 0.03);
  EXPECT_LT(EceOf(rounds, table), raw / 3);
}

TEST(FitTemperatures, CalibratedRoundsKeepTemperaturesNearOne) {
  const TemperatureTable table = *FitTemperatures(Rounds({1, 1}, 40000), 2);
  for (const double t : table.temperatures()) EXPECT_NEAR(t, 1, 0.15);
}

TEST(FitTemperatures, CensoredRoundsAreRefused) {
  EXPECT_FALSE(FitTemperatures({}, 3));
  auto rounds = Rounds({1, 1, 1}, 10);
  rounds[4].verified = 2;
  const auto fit = FitTemperatures(rounds, 3);
  ASSERT_FALSE(fit);
  EXPECT_NE(fit.error().message.find("2 verified"), std::string::npos) << fit.error().message;
  EXPECT_FALSE(FitTemperatures(Rounds({1, 1, 1}, 10), 4));
}

TEST(TemperatureTableJson, ReadsBackWhatItWrote) {
  const TemperatureTable table = *TemperatureTable::Create({1, 0.7000000000000001, 3, 20, 0.05});
  const auto read = ParseTemperatureTable(TemperatureTableJson(table), 5);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, table);
}

TEST(TemperatureTableJson, RefusalsNameTheMember) {
  const std::string text = TemperatureTableJson(TemperatureTable::Identity(2));
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return changed.replace(at, from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the temperature table"},
      {with("\"block_size\":2", "\"block_size\":3"), "\"block_size\" is 3, not 2"},
      {with("[1.0,1.0]", "[1.0]"), "an array of 2"},
      {with("[1.0,1.0]", "[1.0,\"1\"]"), "a number"},
      {with("[1.0,1.0]", "[1.0,0]"), "temperature 0 of draft 2"},
      {with("[1.0,1.0]", "[1.0,21]"), "temperature 21 of draft 2"},
      {with("temperatures\":", "temperature\":"), "no member"}};
  for (const auto& [bad, words] : cases) {
    const auto read = ParseTemperatureTable(bad, 2);
    ASSERT_FALSE(read) << bad;
    EXPECT_NE(read.error().message.find(words), std::string::npos) << read.error().message;
  }
  EXPECT_FALSE(ParseTemperatureTable(text, 5)) << "a table of another block size";
}

}  // namespace
}  // namespace deepinfer::spec
