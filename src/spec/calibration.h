// From raw confidences to probabilities of acceptance: sequential temperature scaling, and how well
// probabilities fit outcomes. Source: spec algorithms section 1.3.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace deepinfer::spec {

// Outcomes by predicted probability, in equal bins of [0, 1]. A value.
class CalibrationBins {
 public:
  static constexpr int kBins = 20;

  // `probability` in [0, 1].
  void Add(double probability, bool happened);
  void Merge(const CalibrationBins& other);

  int64_t count() const;
  // Expected calibration error: the mean over all entries of |mean probability - share that
  // happened| of their bin. 0 without entries.
  double Ece() const;

 private:
  struct Bin {
    int64_t count = 0;
    int64_t happened = 0;
    double probability = 0;  // sum
  };
  std::array<Bin, kBins> bins_;
};

// Area under the ROC curve, from a histogram of 1000 bins: how often something that happened had
// the higher probability, ties counting half. 0.5 where all or none happened.
double Auc(std::span<const double> probability, std::span<const bool> happened);

// One draft with its outcome.
struct CalibrationRound {
  std::vector<float> confidence;  // raw, one a draft
  int64_t verified = 0;           // drafts that the target looked at
  int64_t accepted = 0;           // of them
};

// Temperatures of the confidence head's values, one a draft of the block.
class TemperatureTable {
 public:
  static constexpr double kLowest = 0.05, kHighest = 20;

  // Temperatures 1.
  static TemperatureTable Identity(int64_t block_size);
  // Errors: no temperatures, one outside [kLowest, kHighest].
  static Result<TemperatureTable> Create(std::vector<double> temperatures);

  int64_t block_size() const { return std::ssize(temperatures_); }
  std::span<const double> temperatures() const { return temperatures_; }

  // Chances that the drafts up to each are all accepted: the running product of
  // sigmoid(confidence / temperature). Never rises; 0 from a NaN on. confidence.size() <=
  // block_size() == out.size() at least.
  void Survival(std::span<const float> confidence, std::span<double> out) const;

  friend bool operator==(const TemperatureTable&, const TemperatureTable&) = default;

 private:
  std::vector<double> temperatures_;
};

// Chooses the temperatures one after the other, those before fixed: of a grid, the one at which the
// chance that drafts 1 to k are all accepted has the least ECE, nearest to 1 among equals.
// Errors: no rounds, or one that was not verified in full: what a shorter verification did not look
// at is censored.
Result<TemperatureTable> FitTemperatures(std::span<const CalibrationRound> rounds,
                                         int64_t block_size);

// As JSON (docs/speculation.md, "Files").
std::string TemperatureTableJson(const TemperatureTable& table);
// Errors name the member and its value: no JSON, an unknown or missing member, a table of another
// block size, a temperature out of range.
Result<TemperatureTable> ParseTemperatureTable(std::string_view text, int64_t block_size);

}  // namespace deepinfer::spec
