#include "spec/speculation_stats.h"

#include <algorithm>

namespace deepinfer::spec {
namespace {

void AddAt(const std::vector<int64_t>& from, std::vector<int64_t>& to) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t k = 0; k < from.size(); ++k) to[k] += from[k];
}

double Ratio(int64_t a, int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

void SpeculationStats::AddStep(int64_t budget, double draft, double verify) {
  ++steps;
  draft_steps += budget >= 0 ? 1 : 0;
  budget_tokens += std::max<int64_t>(0, budget);
  draft_seconds += draft;
  verify_seconds += verify;
}

void SpeculationStats::AddRound(const VerifiedDrafts& round) {
  ++rounds;
  drafted_tokens += round.drafted;
  verified_tokens += round.verified;
  accepted_tokens += round.accepted;
  const auto verified = static_cast<size_t>(round.verified);
  if (reached_at.size() < verified) {
    reached_at.resize(verified);
    accepted_at.resize(verified);
  }
  for (size_t k = 0; k < verified; ++k) {
    const bool all_before = round.accepted >= static_cast<int64_t>(k);
    const bool stands = round.accepted > static_cast<int64_t>(k);
    reached_at[k] += all_before ? 1 : 0;
    accepted_at[k] += stands ? 1 : 0;
    calibration.Add(round.survival[k], stands);
  }
}

void SpeculationStats::Merge(const SpeculationStats& other) {
  steps += other.steps;
  draft_steps += other.draft_steps;
  budget_tokens += other.budget_tokens;
  draft_seconds += other.draft_seconds;
  verify_seconds += other.verify_seconds;
  rounds += other.rounds;
  drafted_tokens += other.drafted_tokens;
  verified_tokens += other.verified_tokens;
  accepted_tokens += other.accepted_tokens;
  AddAt(other.reached_at, reached_at);
  AddAt(other.accepted_at, accepted_at);
  calibration.Merge(other.calibration);
}

double SpeculationStats::MeanAcceptedLength() const { return 1 + Ratio(accepted_tokens, rounds); }

double SpeculationStats::AcceptanceAt(int64_t k) const {
  const auto at = static_cast<size_t>(k);
  return at < reached_at.size() ? Ratio(accepted_at[at], reached_at[at]) : 0;
}

double SpeculationStats::MeanBudget() const { return Ratio(budget_tokens, draft_steps); }

}  // namespace deepinfer::spec
