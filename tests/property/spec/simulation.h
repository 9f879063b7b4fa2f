// Requests whose drafts are accepted with known chances, and an accelerator whose steps cost the
// same until a knee: what the planner's choices are worth, computed exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "spec/verify_planner.h"

namespace deepinfer::spec::testing {

inline constexpr int64_t kBlock = 5;

// Seconds of a pass over n tokens: `flat` until `knee` tokens, then in proportion.
inline CostTable FlatUntilKnee(double flat, int64_t knee, double draft) {
  CostTable table{.device = "simulated", .verify = {}, .draft = {}};
  table.verify =
      *CostCurve::Create({{1, flat}, {knee, flat}, {8 * knee, 8 * flat}, {16 * knee, 16 * flat}});
  table.draft =
      *CostCurve::Create({{1, draft}, {knee / kBlock, draft}, {16 * knee / kBlock, 16 * draft}});
  return table;
}

// One request's stream of blocks: an easiness that drifts, as text does between parts that are easy
// and hard to guess, and conditional chances that scatter around it.
class SimulatedRequest {
 public:
  explicit SimulatedRequest(uint64_t seed) : random_(seed) {
    std::normal_distribution<double> normal(1.0, 1.0);
    mean_ = normal(random_);
    level_ = mean_;
  }
  // Raw confidences of the next block: logits of true conditional chances.
  std::vector<float> NextBlock() {
    std::normal_distribution<double> normal(0, 1);
    level_ = mean_ + 0.8 * (level_ - mean_) + 0.5 * normal(random_);
    std::vector<float> raw;
    for (int64_t k = 0; k < kBlock; ++k) {
      raw.push_back(static_cast<float>(level_ + 0.7 * normal(random_)));
    }
    return raw;
  }

 private:
  std::mt19937_64 random_;
  double mean_ = 0, level_ = 0;
};

struct Throughput {
  double tokens = 0, seconds = 0;
  double drafts = 0;  // verified, a request and step
  double rate() const { return tokens / seconds; }
};

// Expected tokens of a block when its first `verified` drafts are looked at.
inline double ExpectedTokens(std::span<const float> raw, int64_t verified) {
  double sum = 1, survival = 1;
  for (int64_t k = 0; k < verified; ++k) {
    survival *= 1 / (1 + std::exp(-double{raw[static_cast<size_t>(k)]}));
    sum += survival;
  }
  return sum;
}

// `load` requests for `steps` steps; depth < 0: the planner decides, 0: no drafts, else fixed.
inline Throughput Simulate(const CostTable& costs, int64_t load, int64_t steps, int64_t depth) {
  std::vector<SimulatedRequest> requests;
  for (int64_t i = 0; i < load; ++i) requests.emplace_back(1000 + i);
  VerifyPlanner planner =
      *VerifyPlanner::Create({.block_size = kBlock, .depth = kBlock, .slots = load}, costs,
                             TemperatureTable::Identity(kBlock));
  Throughput out;
  std::vector<PlannedRow> rows(static_cast<size_t>(load));
  for (int64_t i = 0; i < load; ++i) {
    rows[static_cast<size_t>(i)] = {static_cast<uint64_t>(i), i, 1, kBlock};
  }
  std::vector<std::vector<float>> raw(static_cast<size_t>(load));
  std::vector<VerifyLength> lengths(static_cast<size_t>(load));
  constexpr int64_t kWarmUp = 3;
  for (int64_t step = 0; step < steps + kWarmUp; ++step) {
    bool drafts = depth > 0;
    std::fill(lengths.begin(), lengths.end(), VerifyLength{depth, depth});
    for (size_t i = 0; i < raw.size(); ++i) raw[i] = requests[i].NextBlock();
    if (depth < 0) {
      const StepBudget budget = planner.PlanStep(rows, {});
      drafts = budget.draft;
      std::fill(lengths.begin(), lengths.end(), VerifyLength{});
      std::vector<DraftedRow> drafted;
      for (size_t i = 0; drafts && i < rows.size(); ++i) drafted.push_back({rows[i], raw[i]});
      if (drafts) planner.ChooseLengths(budget, drafted, lengths);
    }
    if (step < kWarmUp) continue;
    int64_t verified = 0;
    for (size_t i = 0; i < raw.size(); ++i) {
      out.tokens += ExpectedTokens(raw[i], lengths[i].commit);
      verified += lengths[i].compute;
    }
    out.seconds += costs.verify.At(load + verified) + (drafts ? costs.draft.At(load) : 0);
    out.drafts += static_cast<double>(verified) / static_cast<double>(load * steps);
  }
  return out;
}

}  // namespace deepinfer::spec::testing
