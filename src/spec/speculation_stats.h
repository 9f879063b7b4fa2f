// What speculation does: counts and times as plain values. Source: spec algorithms sections 1.2 and
// 10.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spec/calibration.h"

namespace deepinfer::spec {

// One request's share of a step that verified drafts.
struct VerifiedDrafts {
  std::span<const double> survival;  // predicted, of each draft; at least `verified`
  int64_t drafted = 0;
  int64_t verified = 0;
  int64_t accepted = 0;
};

struct SpeculationStats {
  int64_t steps = 0;          // in which something was decoded
  int64_t draft_steps = 0;    // that drafted
  int64_t budget_tokens = 0;  // sum over draft_steps of the drafts that might be verified
  double draft_seconds = 0;
  double verify_seconds = 0;  // of the passes of all steps

  int64_t rounds = 0;  // requests' shares of draft_steps
  int64_t drafted_tokens = 0;
  int64_t verified_tokens = 0;
  int64_t accepted_tokens = 0;
  // Of draft k: how often it was verified with all before it accepted, and then accepted.
  std::vector<int64_t> reached_at, accepted_at;
  CalibrationBins calibration;  // of survivals; drafts that nobody verified say nothing

  // A step; `budget` < 0: it did not draft.
  void AddStep(int64_t budget, double draft_seconds, double verify_seconds);
  void AddRound(const VerifiedDrafts& round);
  void Merge(const SpeculationStats& other);

  // Tokens that a round gives, with the one that is certain. 1 without rounds.
  double MeanAcceptedLength() const;
  // Of draft k (from 0) where all before it were accepted; 0 where none was reached.
  double AcceptanceAt(int64_t k) const;
  // Drafts that might be verified, a drafting step.
  double MeanBudget() const;
};

}  // namespace deepinfer::spec
