// What the planner promises about any step, and that it finds what a search of all choices finds.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "tests/property/spec/simulation.h"

namespace deepinfer::spec::testing {
namespace {

// A random step: rows with limits, and confidences of which many are equal.
struct Step {
  std::vector<PlannedRow> rows;
  std::vector<std::vector<float>> earlier, current;
  StepLoad load;

  std::vector<DraftedRow> Drafted(const std::vector<std::vector<float>>& raw) const {
    std::vector<DraftedRow> out;
    for (size_t i = 0; i < rows.size(); ++i) out.push_back({rows[i], raw[i]});
    return out;
  }
};

constexpr int64_t kSlots = 64;

std::vector<float> RandomConfidences(std::mt19937_64& random) {
  std::vector<float> raw(kBlock);
  for (float& c : raw) {
    // Saturated values are exactly 1 as probabilities.
    c = random() % 4 == 0 ? 40.0f : static_cast<float>(static_cast<int64_t>(random() % 13) - 5);
  }
  return raw;
}

Step RandomStep(std::mt19937_64& random, size_t most_rows) {
  Step step;
  std::vector<int64_t> slots(kSlots);
  std::iota(slots.begin(), slots.end(), 0);
  std::shuffle(slots.begin(), slots.end(), random);
  const size_t rows = 1 + random() % most_rows;
  for (size_t i = 0; i < rows; ++i) {
    step.rows.push_back({.request = 100 + i,
                         .slot = slots[i],
                         .generation = 5,
                         .max_drafts = static_cast<int64_t>(random() % (kBlock + 2))});
    step.earlier.push_back(RandomConfidences(random));
    step.current.push_back(RandomConfidences(random));
  }
  step.load.other_tokens = static_cast<int64_t>(random() % 20);
  if (random() % 2 == 0) {
    step.load.max_tokens =
        std::ssize(step.rows) + step.load.other_tokens + static_cast<int64_t>(random() % 12);
  }
  return step;
}

CostTable RandomCosts(std::mt19937_64& random) {
  std::vector<CostPoint> verify, draft;
  double seconds = 1;
  for (int64_t count = 1; count < 200; count += 1 + static_cast<int64_t>(random() % 9)) {
    verify.push_back({count, seconds});
    if (random() % 3 != 0) seconds += static_cast<double>(random() % 100) / 100;
  }
  draft = {{1, 0.01 + static_cast<double>(random() % 100) / 100}, {64, 2.0}};
  const int64_t padded = random() % 2 == 0 ? verify[verify.size() / 2].count : 0;
  return {.device = "random",
          .verify = *CostCurve::Create(verify, padded),
          .draft = *CostCurve::Create(draft)};
}

VerifyPlanner Planner(const CostTable& costs, VerifyMode mode = VerifyMode::kCompact,
                      int64_t depth = kBlock) {
  return *VerifyPlanner::Create(
      {.block_size = kBlock, .depth = depth, .mode = mode, .slots = kSlots}, costs,
      TemperatureTable::Identity(kBlock));
}

// A planner that saw `earlier`, and the step's budget.
StepBudget PlanAfter(VerifyPlanner& planner, const Step& step) {
  std::vector<VerifyLength> ignored(step.rows.size());
  planner.ChooseLengths({}, step.Drafted(step.earlier), ignored);
  return planner.PlanStep(step.rows, step.load);
}

std::vector<double> Survivals(const std::vector<float>& raw) {
  std::vector<double> out(raw.size());
  TemperatureTable::Identity(kBlock).Survival(raw, out);
  return out;
}

RC_GTEST_PROP(VerifyPlanner, LengthsKeepEveryLimit, (uint64_t seed)) {
  std::mt19937_64 random(seed);
  const Step step = RandomStep(random, 30);
  for (const VerifyMode mode : {VerifyMode::kStatic, VerifyMode::kCompact, VerifyMode::kCap}) {
    const int64_t depth = 1 + static_cast<int64_t>(random() % kBlock);
    VerifyPlanner planner = Planner(RandomCosts(random), mode, depth);
    const StepBudget budget = PlanAfter(planner, step);
    if (!budget.draft) {
      RC_ASSERT(budget.commit == 0 && budget.compute == 0);
      continue;
    }
    std::vector<VerifyLength> lengths(step.rows.size());
    planner.ChooseLengths(budget, step.Drafted(step.current), lengths);
    int64_t computed = 0, committed = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      RC_ASSERT(lengths[i].commit <= lengths[i].compute);
      RC_ASSERT(lengths[i].compute <= std::min(depth, step.rows[i].max_drafts));
      computed += lengths[i].compute;
      committed += lengths[i].commit;
      if (mode != VerifyMode::kCap) RC_ASSERT(lengths[i].compute == lengths[i].commit);
    }
    RC_ASSERT(computed <= budget.compute);
    RC_ASSERT(committed <= budget.commit);
    RC_ASSERT(std::ssize(step.rows) + step.load.other_tokens + computed <= step.load.max_tokens);
  }
}

// The drafts that are taken are a prefix of each request's, and none that is left out would have
// been better; equals go by position, then by request.
RC_GTEST_PROP(VerifyPlanner, RankingTakesTheBestDraftsAsPrefixes, (uint64_t seed)) {
  std::mt19937_64 random(seed);
  const Step step = RandomStep(random, 12);
  VerifyPlanner planner = Planner(RandomCosts(random));
  const auto budget = static_cast<int64_t>(random() % 40);
  std::vector<VerifyLength> lengths(step.rows.size());
  planner.ChooseLengths({.draft = true, .commit = budget, .compute = budget},
                        step.Drafted(step.current), lengths);
  using Key = std::tuple<double, int64_t, uint64_t>;  // ascending: better first
  std::vector<Key> all;
  std::map<Key, size_t> row_of;
  for (size_t i = 0; i < step.rows.size(); ++i) {
    const auto survival = Survivals(step.current[i]);
    for (int64_t k = 0; k < std::min(kBlock, step.rows[i].max_drafts); ++k) {
      if (survival[static_cast<size_t>(k)] < 1e-6) continue;
      all.push_back({-survival[static_cast<size_t>(k)], k, step.rows[i].request});
      row_of[all.back()] = i;
    }
  }
  std::sort(all.begin(), all.end());
  std::vector<int64_t> want(step.rows.size());
  for (int64_t k = 0; k < std::min(budget, std::ssize(all)); ++k) {
    const size_t row = row_of[all[static_cast<size_t>(k)]];
    RC_ASSERT(std::get<1>(all[static_cast<size_t>(k)]) == want[row]);  // a prefix
    ++want[row];
  }
  for (size_t i = 0; i < want.size(); ++i) RC_ASSERT(lengths[i].commit == want[i]);
}

RC_GTEST_PROP(VerifyPlanner, TheOrderOfRequestsChangesNothing, (uint64_t seed)) {
  std::mt19937_64 random(seed);
  const Step step = RandomStep(random, 20);
  const CostTable costs = RandomCosts(random);
  std::vector<size_t> order(step.rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  Step shuffled{.rows = {}, .earlier = {}, .current = {}, .load = step.load};
  for (const size_t i : order) {
    shuffled.rows.push_back(step.rows[i]);
    shuffled.earlier.push_back(step.earlier[i]);
    shuffled.current.push_back(step.current[i]);
  }
  VerifyPlanner a = Planner(costs), b = Planner(costs);
  const StepBudget first = PlanAfter(a, step), second = PlanAfter(b, shuffled);
  RC_ASSERT(first.draft == second.draft);
  RC_ASSERT(first.commit == second.commit);
  std::vector<VerifyLength> lengths(order.size()), others(order.size());
  a.ChooseLengths(first, step.Drafted(step.current), lengths);
  b.ChooseLengths(second, shuffled.Drafted(shuffled.current), others);
  for (size_t i = 0; i < order.size(); ++i) RC_ASSERT(lengths[order[i]].commit == others[i].commit);
}

RC_GTEST_PROP(VerifyPlanner, MoreConfidenceNeverShortensARequest, (uint64_t seed)) {
  std::mt19937_64 random(seed);
  const Step step = RandomStep(random, 12);
  VerifyPlanner planner = Planner(RandomCosts(random));
  const auto budget = static_cast<int64_t>(random() % 30);
  const StepBudget plan{.draft = true, .commit = budget, .compute = budget};
  std::vector<VerifyLength> before(step.rows.size()), after(step.rows.size());
  planner.ChooseLengths(plan, step.Drafted(step.current), before);
  std::vector<std::vector<float>> raised = step.current;
  const size_t row = random() % raised.size();
  raised[row][random() % kBlock] += static_cast<float>(random() % 4);
  planner.ChooseLengths(plan, step.Drafted(raised), after);
  RC_ASSERT(after[row].commit >= before[row].commit);
}

// The causal barrier. The confidence after draft j tells what draft j is; whether j is verified
// must not depend on it, neither by the budget, which was made of earlier steps, nor by the
// ranking.
RC_GTEST_PROP(VerifyPlanner, ADraftsVerificationDoesNotDependOnWhatItReveals, (uint64_t seed)) {
  std::mt19937_64 random(seed);
  const Step step = RandomStep(random, 20);
  const CostTable costs = RandomCosts(random);
  VerifyPlanner a = Planner(costs), b = Planner(costs);
  const StepBudget budget = PlanAfter(a, step), same = PlanAfter(b, step);
  const size_t row = random() % step.rows.size();
  const auto draft = static_cast<int64_t>(random() % kBlock);
  std::vector<std::vector<float>> other = step.current;
  const std::vector<float> changed = RandomConfidences(random);
  std::copy(changed.begin() + draft + 1, changed.end(), other[row].begin() + draft + 1);
  std::vector<VerifyLength> lengths(step.rows.size()), others(step.rows.size());
  a.ChooseLengths(budget, step.Drafted(step.current), lengths);
  b.ChooseLengths(same, step.Drafted(other), others);
  RC_ASSERT((lengths[row].commit > draft) == (others[row].commit > draft));
  // The next step's budget does know, and may.
  const bool forgot = a.PlanStep(step.rows, step.load).expected_tokens ==
                      b.PlanStep(step.rows, step.load).expected_tokens;
  RC_CLASSIFY(!forgot);
}

// Over all ways to give every request a prefix, and over not drafting, no choice yields more
// expected tokens a second.
RC_GTEST_PROP(VerifyPlanner, BudgetAndRankingAreTheBestOfAllChoices, (uint64_t seed)) {
  std::mt19937_64 random(seed);
  const Step step = RandomStep(random, 4);
  const CostTable costs = RandomCosts(random);
  VerifyPlanner planner = Planner(costs);
  const StepBudget budget = PlanAfter(planner, step);
  const double certain = static_cast<double>(step.rows.size());
  const int64_t tokens = std::ssize(step.rows) + step.load.other_tokens;
  int64_t drafting = 0;
  for (const PlannedRow& row : step.rows) drafting += row.max_drafts > 0 ? 1 : 0;
  double best = certain / costs.verify.At(tokens);
  std::vector<int64_t> choice(step.rows.size());
  for (size_t digit = 0; digit < choice.size();) {
    double expected = certain;
    int64_t computed = 0;
    for (size_t i = 0; i < choice.size(); ++i) {
      const auto survival = Survivals(step.earlier[i]);
      for (int64_t k = 0; k < choice[i]; ++k) expected += survival[static_cast<size_t>(k)];
      computed += choice[i];
    }
    if (tokens + computed <= step.load.max_tokens && drafting > 0) {
      best = std::max(best,
                      expected / (costs.draft.At(drafting) + costs.verify.At(tokens + computed)));
    }
    for (digit = 0; digit < choice.size(); choice[digit++] = 0) {
      if (++choice[digit] <= std::min(kBlock, step.rows[digit].max_drafts)) break;
    }
  }
  const double got = budget.expected_tokens / ((budget.draft ? costs.draft.At(drafting) : 0) +
                                               costs.verify.At(tokens + budget.compute));
  RC_ASSERT(std::fabs(got - best) <= 1e-9 * best);
}

TEST(VerifyPlanner, NewRequestsAndNewOwnersOfASlotCountAsCertain) {
  // Drafts are almost free.
  VerifyPlanner planner = Planner(FlatUntilKnee(1, 1000, 1e-6));
  std::vector<PlannedRow> rows = {{1, 7, 1, kBlock}};
  EXPECT_EQ(planner.PlanStep(rows, {}).commit, kBlock);
  EXPECT_EQ(planner.PlanStep(rows, {}).expected_tokens, 1 + kBlock);
  const std::vector<float> hopeless(kBlock, -40.0f);
  VerifyLength length;
  planner.ChooseLengths({}, {{{rows[0], hopeless}}}, {&length, 1});
  EXPECT_FALSE(planner.PlanStep(rows, {}).draft);
  rows[0].generation = 2;
  EXPECT_EQ(planner.PlanStep(rows, {}).commit, kBlock) << "the slot has a new owner";
  // Confidences of a block that ended early say nothing of what follows.
  const std::vector<float> sure = {40.0f};
  planner.ChooseLengths({}, {{{rows[0], sure}}}, {&length, 1});
  EXPECT_EQ(planner.PlanStep(rows, {}).commit, kBlock);
}

TEST(VerifyPlanner, HopelessDraftsAreTriedAgainNowAndThen) {
  const CostTable costs = FlatUntilKnee(1, 100, 0.1);
  VerifyPlanner planner = *VerifyPlanner::Create(
      {.block_size = kBlock, .depth = kBlock, .slots = 1, .probe_share = 0.02}, costs,
      TemperatureTable::Identity(kBlock));
  const std::vector<PlannedRow> rows = {{1, 0, 1, kBlock}};
  const std::vector<float> hopeless(kBlock, -8.0f), sure(kBlock, 8.0f);
  VerifyLength length;
  planner.ChooseLengths({}, {{{rows[0], hopeless}}}, {&length, 1});
  int drafted = 0;
  for (int step = 0; step < 40; ++step) {
    const StepBudget budget = planner.PlanStep(rows, {});
    drafted += budget.draft ? 1 : 0;
    if (budget.draft) planner.ChooseLengths(budget, {{{rows[0], hopeless}}}, {&length, 1});
  }
  EXPECT_GE(drafted, 5);
  EXPECT_LE(drafted, 8);
  // One try is enough to notice that the text has become easy.
  int skipped = 0;
  StepBudget budget = planner.PlanStep(rows, {});
  for (; !budget.draft; budget = planner.PlanStep(rows, {})) ++skipped;
  EXPECT_LT(skipped, 10);
  planner.ChooseLengths(budget, {{{rows[0], sure}}}, {&length, 1});
  EXPECT_EQ(planner.PlanStep(rows, {}).commit, kBlock);
}

TEST(VerifyPlanner, NothingIsDraftedWhereNothingMayBeVerified) {
  for (const VerifyMode mode : {VerifyMode::kStatic, VerifyMode::kCompact, VerifyMode::kCap}) {
    VerifyPlanner planner = Planner(FlatUntilKnee(1, 100, 0.1), mode);
    const std::vector<PlannedRow> last = {{1, 0, 1, 0}, {2, 1, 1, 0}};
    EXPECT_FALSE(planner.PlanStep(last, {}).draft);
    const std::vector<PlannedRow> full = {{1, 0, 1, kBlock}, {2, 1, 1, kBlock}};
    EXPECT_FALSE(planner.PlanStep(full, {.other_tokens = 6, .max_tokens = 8}).draft);
    EXPECT_EQ(planner.PlanStep(full, {.other_tokens = 6, .max_tokens = 11}).compute, 3);
    EXPECT_FALSE(planner.PlanStep({}, {.other_tokens = 6}).draft);
  }
}

TEST(VerifyPlanner, CapComputesEverythingAndAcceptsTheBudget) {
  const CostTable costs = FlatUntilKnee(1, 10, 0.01);
  VerifyPlanner cap = Planner(costs, VerifyMode::kCap), compact = Planner(costs);
  Step step;
  for (uint64_t i = 0; i < 4; ++i) {
    step.rows.push_back({i, static_cast<int64_t>(i), 1, kBlock});
    step.earlier.push_back(std::vector<float>(kBlock, static_cast<float>(i)));
    step.current.push_back(std::vector<float>(kBlock, static_cast<float>(3 - i)));
  }
  const StepBudget a = PlanAfter(cap, step), b = PlanAfter(compact, step);
  ASSERT_TRUE(a.draft);
  EXPECT_EQ(a.commit, b.commit);
  EXPECT_LT(a.commit, 4 * kBlock);
  EXPECT_EQ(a.compute, 4 * kBlock);
  std::vector<VerifyLength> capped(4), trimmed(4);
  cap.ChooseLengths(a, step.Drafted(step.current), capped);
  compact.ChooseLengths(b, step.Drafted(step.current), trimmed);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(capped[i].commit, trimmed[i].commit);
    EXPECT_EQ(capped[i].compute, kBlock);
  }
}

TEST(VerifyPlanner, RefusesWhatDoesNotFitTheBlock) {
  const CostTable costs = FlatUntilKnee(1, 10, 0.01);
  const auto error = [&](const PlannerOptions& options, const CostTable& table, int64_t block) {
    const auto planner = VerifyPlanner::Create(options, table, TemperatureTable::Identity(block));
    return planner ? std::string() : planner.error().message;
  };
  EXPECT_EQ(error({.block_size = 5, .depth = 5, .slots = 1}, costs, 5), "");
  EXPECT_NE(error({.block_size = 5, .depth = 6, .slots = 1}, costs, 5).find("depth 6"),
            std::string::npos);
  EXPECT_NE(error({.block_size = 5, .depth = 0, .slots = 1}, costs, 5).find("[1, 5]"),
            std::string::npos);
  EXPECT_NE(error({.block_size = 5, .depth = 5, .slots = 1}, costs, 4).find("4 temperatures"),
            std::string::npos);
  EXPECT_NE(error({.block_size = 5, .depth = 5, .slots = 1}, {}, 5).find("costs"),
            std::string::npos);
  EXPECT_EQ(error({.block_size = 5, .depth = 5, .mode = VerifyMode::kStatic, .slots = 1}, {}, 5),
            "");
}

// An accelerator does a step in the same time until it is full. The budget shrinks with load
// without jumps, and no fixed depth is noticeably better at any load.
TEST(SimulatedAccelerator, BudgetFallsSmoothlyAndNoFixedDepthIsBetter) {
  const CostTable costs = FlatUntilKnee(0.008, 192, 0.0008);
  constexpr int64_t kSteps = 60;
  double before = kBlock, first = 0, last = 0, worst = 1e9;
  for (int64_t load = 1; load <= 256; load += load < 16 ? 1 : load < 64 ? 7 : 24) {
    const Throughput planned = Simulate(costs, load, kSteps, -1);
    double best = 0;
    for (int64_t depth = 0; depth <= kBlock; ++depth) {
      best = std::max(best, Simulate(costs, load, kSteps, depth).rate());
    }
    worst = std::min(worst, planned.rate() / best);
    EXPECT_GE(planned.rate(), 0.97 * best) << "at load " << load;
    EXPECT_LE(planned.drafts, before + 0.35) << "at load " << load;
    EXPECT_GE(planned.drafts, before - 1.5) << "a jump at load " << load;
    before = planned.drafts;
    if (load == 1) first = planned.drafts;
    last = planned.drafts;
  }
  std::printf(
      "[ simulated] least share of the best fixed depth %.3f; drafts a request %.2f at load "
      "1, %.2f at the largest\n",
      worst, first, last);
  EXPECT_GT(first, 4);
  EXPECT_LT(last, 1);
}

// Where a step's cost is in proportion to its tokens, as on a processor, plain decoding is nearly
// the best; the planner may lose no more than its tries.
TEST(SimulatedAccelerator, ProportionalCostsAreNeverMuchSlowerThanPlainDecoding) {
  CostTable costs{.device = "simulated", .verify = {}, .draft = {}};
  costs.verify = *CostCurve::Create({{1, 0.001}, {2, 0.0019}, {512, 0.45}});
  costs.draft = *CostCurve::Create({{1, 0.0005}, {256, 0.1}});
  for (const int64_t load : {1, 2, 5, 16, 64}) {
    const double plain = Simulate(costs, load, 200, 0).rate();
    EXPECT_GE(Simulate(costs, load, 200, -1).rate(), 0.97 * plain) << "at load " << load;
  }
}

}  // namespace
}  // namespace deepinfer::spec::testing
