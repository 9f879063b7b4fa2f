#include "spec/verify_planner.h"

#include <algorithm>
#include <tuple>

namespace deepinfer::spec {
namespace {

// A draft less likely than this is not worth a look.
constexpr double kLeastSurvival = 1e-6;

Status CheckOptions(const PlannerOptions& options, const CostTable& costs,
                    const TemperatureTable& temperatures) {
  const auto check = [](const char* name, int64_t value, int64_t least, int64_t most) -> Status {
    if (value >= least && value <= most) return {};
    return MakeError(ErrorCode::kInvalidArgument, "{} {} is outside [{}, {}]", name, value, least,
                     most);
  };
  constexpr int64_t kMost = int64_t{1} << 30;
  DI_RETURN_IF_ERROR(check("block_size", options.block_size, 1, 1024));
  DI_RETURN_IF_ERROR(check("depth", options.depth, 1, options.block_size));
  DI_RETURN_IF_ERROR(check("slots", options.slots, 1, kMost));
  if (!(options.probe_share >= 0)) {
    return MakeError(ErrorCode::kInvalidArgument, "probe_share {} is not at least 0",
                     options.probe_share);
  }
  if (temperatures.block_size() != options.block_size) {
    return MakeError(ErrorCode::kInvalidArgument, "{} temperatures for blocks of {} drafts",
                     temperatures.block_size(), options.block_size);
  }
  if (options.mode != VerifyMode::kStatic && (costs.verify.empty() || costs.draft.empty())) {
    return MakeError(ErrorCode::kInvalidArgument, "a budget of drafts needs the costs of steps");
  }
  return {};
}

}  // namespace

Result<VerifyPlanner> VerifyPlanner::Create(const PlannerOptions& options, CostTable costs,
                                            TemperatureTable temperatures) {
  DI_RETURN_IF_ERROR(CheckOptions(options, costs, temperatures));
  return VerifyPlanner(options, std::move(costs), std::move(temperatures));
}

VerifyPlanner::VerifyPlanner(const PlannerOptions& options, CostTable costs,
                             TemperatureTable temperatures)
    : options_(options),
      costs_(std::move(costs)),
      temperatures_(std::move(temperatures)),
      history_(static_cast<size_t>(options.slots)),
      survival_(static_cast<size_t>(options.slots * options.block_size)) {}

StepBudget VerifyPlanner::PlanStep(std::span<const PlannedRow> rows, const StepLoad& load) {
  const int64_t certain = std::ssize(rows), tokens = certain + load.other_tokens;
  StepBudget none{.expected_tokens = static_cast<double>(certain)};
  const Demand demand = CollectHistories(rows);
  const int64_t room = std::clamp<int64_t>(load.max_tokens - tokens, 0, demand.drafts);
  if (room == 0) return none;
  const int64_t most = std::min(room, std::ssize(candidates_));
  Rank(most);
  if (options_.mode == VerifyMode::kStatic) {
    StepBudget all{true, room, room, none.expected_tokens};
    for (int64_t k = 0; k < most; ++k) {
      all.expected_tokens += candidates_[static_cast<size_t>(k)].survival;
    }
    return all;
  }
  const double draft_cost = costs_.draft.At(demand.sequences);
  Choice choice = BestChoice(certain, tokens, most, draft_cost);
  if (choice.rate <= none.expected_tokens / costs_.verify.At(tokens)) {
    if (probe_seconds_ < draft_cost) {
      probe_seconds_ += options_.probe_share * costs_.verify.At(tokens);
      return none;
    }
    // The draft is paid for by what was set aside; verifying pays for itself or is left out.
    choice = BestChoice(certain, tokens, most, 0);
  }
  probe_seconds_ = 0;
  const int64_t compute = options_.mode == VerifyMode::kCap ? room : choice.drafts;
  return {true, choice.drafts, compute, choice.expected_tokens};
}

VerifyPlanner::Demand VerifyPlanner::CollectHistories(std::span<const PlannedRow> rows) {
  Demand demand;
  candidates_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t most = std::min(rows[i].max_drafts, options_.depth);
    if (most <= 0) continue;
    ++demand.sequences;
    demand.drafts += most;
    const History& history = history_[static_cast<size_t>(rows[i].slot)];
    const bool known = history.any && history.generation == rows[i].generation;
    const auto survival = SurvivalOf(rows[i].slot);
    for (int64_t k = 0; k < most; ++k) {
      const double chance = known ? survival[static_cast<size_t>(k)] : 1.0;
      if (chance >= kLeastSurvival) candidates_.push_back({chance, k, rows[i].request, i});
    }
  }
  return demand;
}

// Costs may be stairs, so the rate can have many maxima: all are looked at.
VerifyPlanner::Choice VerifyPlanner::BestChoice(int64_t certain, int64_t tokens, int64_t most,
                                                double draft_cost) const {
  double expected = static_cast<double>(certain);
  Choice best{0, expected, expected / (draft_cost + costs_.verify.At(tokens))};
  for (int64_t k = 1; k <= most; ++k) {
    expected += candidates_[static_cast<size_t>(k - 1)].survival;
    const double rate = expected / (draft_cost + costs_.verify.At(tokens + k));
    if (rate > best.rate) best = {k, expected, rate};
  }
  return best;
}

void VerifyPlanner::ChooseLengths(const StepBudget& budget, std::span<const DraftedRow> rows,
                                  std::span<VerifyLength> lengths) {
  candidates_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    lengths[i] = {};
    Remember(rows[i]);
    const int64_t most =
        std::min({rows[i].row.max_drafts, std::ssize(rows[i].confidence), options_.depth});
    const auto survival = SurvivalOf(rows[i].row.slot);
    for (int64_t k = 0; k < most; ++k) {
      candidates_.push_back({survival[static_cast<size_t>(k)], k, rows[i].row.request, i});
    }
  }
  const int64_t computed = std::min(budget.compute, std::ssize(candidates_));
  Rank(computed);
  for (int64_t k = 0; k < computed; ++k) {
    const Candidate& candidate = candidates_[static_cast<size_t>(k)];
    const bool worthy =
        options_.mode == VerifyMode::kStatic || candidate.survival >= kLeastSurvival;
    VerifyLength& length = lengths[candidate.row];
    if (options_.mode != VerifyMode::kCompact || worthy) ++length.compute;
    if (k < budget.commit && worthy) ++length.commit;
  }
}

// What a block did not say counts as certain, like everything of a request without a history.
void VerifyPlanner::Remember(const DraftedRow& row) {
  const auto survival = SurvivalOf(row.row.slot);
  const auto known = std::min(row.confidence.size(), survival.size());
  temperatures_.Survival(row.confidence.first(known), survival);
  const double last = known == 0 ? 1.0 : survival[known - 1];
  std::fill(survival.begin() + static_cast<ptrdiff_t>(known), survival.end(), last);
  history_[static_cast<size_t>(row.row.slot)] = {true, row.row.generation};
}

void VerifyPlanner::Rank(int64_t count) {
  const auto before = [](const Candidate& a, const Candidate& b) {
    if (a.survival != b.survival) return a.survival > b.survival;
    return std::tie(a.position, a.request) < std::tie(b.position, b.request);
  };
  const auto middle = candidates_.begin() + count;
  if (middle != candidates_.end()) {
    std::nth_element(candidates_.begin(), middle, candidates_.end(), before);
  }
  std::sort(candidates_.begin(), middle, before);
}

}  // namespace deepinfer::spec
