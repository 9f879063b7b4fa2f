#include "spec/speculation_stats.h"

#include <gtest/gtest.h>

#include <array>

namespace deepinfer::spec {
namespace {

TEST(SpeculationStats, CountsWhatIsReachedAndWhatStands) {
  SpeculationStats stats;
  EXPECT_EQ(stats.MeanAcceptedLength(), 1);
  EXPECT_EQ(stats.AcceptanceAt(0), 0);
  EXPECT_EQ(stats.MeanBudget(), 0);
  const std::array<double, 3> survival = {0.9, 0.6, 0.3};
  stats.AddStep(4, 0.25, 1);
  stats.AddRound({survival, 3, 3, 1});  // draft 1 stands, 2 does not, 3 is not reached
  stats.AddRound({survival, 3, 1, 1});
  stats.AddStep(-1, 0, 0.5);
  EXPECT_EQ(stats.MeanAcceptedLength(), 2);
  EXPECT_EQ(stats.AcceptanceAt(0), 1);
  EXPECT_EQ(stats.AcceptanceAt(1), 0);
  EXPECT_EQ(stats.reached_at, (std::vector<int64_t>{2, 1, 0}));
  EXPECT_EQ(stats.AcceptanceAt(7), 0);
  EXPECT_EQ(stats.MeanBudget(), 4);
  EXPECT_EQ(stats.steps, 2);
  EXPECT_EQ(stats.draft_seconds, 0.25);
  EXPECT_EQ(stats.verify_seconds, 1.5);
  // Only verified drafts say something: 0.9 twice, 0.6 and 0.3 once.
  EXPECT_EQ(stats.calibration.count(), 4);
  EXPECT_NEAR(stats.calibration.Ece(), (0.2 + 0.6 + 0.3) / 4, 1e-12);
}

TEST(SpeculationStats, MergingIsCountingTogether) {
  const std::array<double, 2> survival = {0.8, 0.5};
  SpeculationStats a, b, both;
  for (SpeculationStats* stats : {&a, &both}) {
    stats->AddStep(2, 1, 2);
    stats->AddRound({survival, 2, 1, 0});
  }
  for (SpeculationStats* stats : {&b, &both}) {
    stats->AddStep(6, 3, 4);
    stats->AddRound({survival, 2, 2, 2});
  }
  a.Merge(b);
  EXPECT_EQ(a.MeanAcceptedLength(), both.MeanAcceptedLength());
  EXPECT_EQ(a.reached_at, both.reached_at);
  EXPECT_EQ(a.accepted_at, both.accepted_at);
  EXPECT_EQ(a.MeanBudget(), 4);
  EXPECT_EQ(a.draft_seconds, 4);
  EXPECT_EQ(a.calibration.Ece(), both.calibration.Ece());
}

}  // namespace
}  // namespace deepinfer::spec
