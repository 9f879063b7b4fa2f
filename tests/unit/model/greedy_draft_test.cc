#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "model/v41/model.h"

namespace deepinfer::model::v41 {
namespace {

TEST(GreedyDraft, IsTheLowestIdOfTheLargestLogit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> logits(201, -3.0f);
  const auto best = [&] { return GreedyDraft({.logits = logits}); };
  EXPECT_EQ(best(), 0);
  for (const int32_t id : {200, 199, 130, 129, 64, 63, 17, 1, 0}) {
    logits[static_cast<size_t>(id)] = 2;
    EXPECT_EQ(best(), id);
  }
  logits.assign(201, nan);
  EXPECT_EQ(best(), 0);
  logits[150] = -std::numeric_limits<float>::max();
  EXPECT_EQ(best(), 150);
}

}  // namespace
}  // namespace deepinfer::model::v41
