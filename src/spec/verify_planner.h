// How many drafts of each request the target verifies in a step, and whether drafting pays at all.
// Pure: no thread, clock or I/O; costs and confidences come in as values. Source: spec algorithms
// section 1.5, the production variant.
//
// A step goes so:
//   budget = PlanStep(rows, load)          from confidences of EARLIER steps alone
//   if budget.draft: draft a block for every row with max_drafts > 0
//   ChooseLengths(budget, drafts, lengths) ranks this step's drafts by their own confidences
//   verify, accept
// The order is what keeps the ratio test lossless. A budget that looked at this step's confidences
// would depend on the very tokens whose verification it decides: the confidence of draft k + 1
// reveals draft k. The ranking may look, since whether a draft is taken depends only on the drafts
// before it and on other requests.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/result.h"
#include "spec/calibration.h"
#include "spec/cost_table.h"

namespace deepinfer::spec {

enum class VerifyMode {
  kStatic,   // every draft
  kCompact,  // the budget's drafts
  kCap,      // computes every draft, accepts at most the budget's: shows what trimming hides
};

struct PlannerOptions {
  int64_t block_size = 0;  // the checkpoint's: what the draft module computes at a time
  int64_t depth = 0;       // most drafts of a request that are verified, 1 to block_size
  VerifyMode mode = VerifyMode::kCompact;
  int64_t slots = 0;  // slots are numbered from 0
  // Where drafting does not pay by old confidences, this share of the time goes into drafts that
  // bring fresh ones. They are not verified unless the old ones say so.
  double probe_share = 0.01;
};

// A request that decodes in the step: one token that it computes anyway, and perhaps drafts.
struct PlannedRow {
  uint64_t request = 0;  // orders requests among equals; unique in the step
  // Whose confidences these are: a slot remembers those of its latest generation. A request that is
  // new or was resumed brings a generation that the slot has not had.
  int64_t slot = 0;
  uint64_t generation = 0;
  // Most drafts that may be verified: what is left of max_tokens, of the context, of depth.
  int64_t max_drafts = 0;
};

struct DraftedRow {
  PlannedRow row;  // max_drafts: at most confidence.size(); less where a grammar cut the drafts
  std::span<const float> confidence;  // raw, of the drafts of this step
};

struct StepLoad {
  int64_t other_tokens = 0;  // tokens of the step besides those of its rows: prefill
  int64_t max_tokens = std::numeric_limits<int64_t>::max();  // all tokens of the step together
};

struct StepBudget {
  bool draft = false;          // else the step's rows compute their one token
  int64_t commit = 0;          // drafts of all rows together that may be accepted,
  int64_t compute = 0;         // and that may be computed
  double expected_tokens = 0;  // of the rows, with the budget, by the earlier confidences
};

struct VerifyLength {
  int64_t compute = 0;  // leading drafts that the target computes
  int64_t commit = 0;   // of them, those that may be accepted; the next token comes after these
};

// Not thread-safe. The same calls give the same results on every machine.
class VerifyPlanner {
 public:
  // Errors: an option out of range, temperatures of another block size, no costs in a mode that
  // needs them.
  static Result<VerifyPlanner> Create(const PlannerOptions& options, CostTable costs,
                                      TemperatureTable temperatures);

  const PlannerOptions& options() const { return options_; }

  // Whether the step drafts, and for how many tokens: of all budgets within max_drafts and
  // max_tokens, and of not drafting, what maximises expected tokens a second; the least among
  // equals. Requests without a history count as certain.
  StepBudget PlanStep(std::span<const PlannedRow> rows, const StepLoad& load);

  // Shares the budget out: the drafts likeliest to survive, those of lower position first among
  // equals, then those of the lower request. Every request gets a prefix of its drafts. Remembers
  // the confidences for later budgets. `lengths` has an entry a row.
  void ChooseLengths(const StepBudget& budget, std::span<const DraftedRow> rows,
                     std::span<VerifyLength> lengths);

 private:
  struct History {
    bool any = false;
    uint64_t generation = 0;
  };
  struct Candidate {
    double survival = 0;
    int64_t position = 0;
    uint64_t request = 0;
    size_t row = 0;
  };

  // What the rows of a step could draft.
  struct Demand {
    int64_t sequences = 0;
    int64_t drafts = 0;
  };
  struct Choice {
    int64_t drafts = 0;
    double expected_tokens = 0;
    double rate = 0;  // expected tokens a second
  };

  VerifyPlanner(const PlannerOptions& options, CostTable costs, TemperatureTable temperatures);

  // Fills candidates_ from the rows' histories.
  Demand CollectHistories(std::span<const PlannedRow> rows);
  // How many of the ranked candidates, at most `most`, give the best rate; the fewest among equals.
  Choice BestChoice(int64_t certain, int64_t tokens, int64_t most, double draft_cost) const;
  // Survival of the drafts of a slot's next block, [block_size].
  std::span<double> SurvivalOf(int64_t slot) {
    return {survival_.data() + slot * options_.block_size,
            static_cast<size_t>(options_.block_size)};
  }
  void Remember(const DraftedRow& row);
  // The best `count` candidates first, in their order.
  void Rank(int64_t count);

  PlannerOptions options_;
  CostTable costs_;
  TemperatureTable temperatures_;
  std::vector<History> history_;  // [slots]
  std::vector<double> survival_;  // [slots, block_size]
  std::vector<Candidate> candidates_;
  double probe_seconds_ = 0;  // set aside for the next try
};

}  // namespace deepinfer::spec
