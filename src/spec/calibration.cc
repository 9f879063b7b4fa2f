#include "spec/calibration.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace deepinfer::spec {
namespace {

// Steps of the grid of temperatures in each direction from 1, and their ratio.
constexpr int kGridSteps = 120;
constexpr double kGridRatio = 1.025;  // 1.025^120 = 19.4, inside the table's range

constexpr int kAucBins = 1000;

int BinOf(double probability, int bins) {
  return std::clamp(static_cast<int>(probability * bins), 0, bins - 1);
}

double Conditional(float confidence, double temperature) {
  const auto probability =
      static_cast<double>(Sigmoid(static_cast<float>(double{confidence} / temperature)));
  return std::isnan(probability) ? 0 : probability;
}

// ECE of the product of each round's `before` and its draft k at a temperature.
double EceAt(std::span<const CalibrationRound> rounds, std::span<const double> before, size_t k,
             double temperature) {
  CalibrationBins bins;
  for (size_t i = 0; i < rounds.size(); ++i) {
    bins.Add(before[i] * Conditional(rounds[i].confidence[k], temperature),
             rounds[i].accepted > static_cast<int64_t>(k));
  }
  return bins.Ece();
}

}  // namespace

void CalibrationBins::Add(double probability, bool happened) {
  Bin& bin = bins_[static_cast<size_t>(BinOf(probability, kBins))];
  ++bin.count;
  bin.happened += happened ? 1 : 0;
  bin.probability += probability;
}

void CalibrationBins::Merge(const CalibrationBins& other) {
  for (size_t i = 0; i < bins_.size(); ++i) {
    bins_[i].count += other.bins_[i].count;
    bins_[i].happened += other.bins_[i].happened;
    bins_[i].probability += other.bins_[i].probability;
  }
}

int64_t CalibrationBins::count() const {
  int64_t sum = 0;
  for (const Bin& bin : bins_) sum += bin.count;
  return sum;
}

double CalibrationBins::Ece() const {
  double error = 0;
  for (const Bin& bin : bins_) {
    error += std::fabs(bin.probability - static_cast<double>(bin.happened));
  }
  return error / static_cast<double>(std::max<int64_t>(1, count()));
}

double Auc(std::span<const double> probability, std::span<const bool> happened) {
  std::array<double, kAucBins> yes{}, no{};
  double all_yes = 0, all_no = 0;
  for (size_t i = 0; i < probability.size(); ++i) {
    const auto bin = static_cast<size_t>(BinOf(probability[i], kAucBins));
    (happened[i] ? yes : no)[bin] += 1;
    (happened[i] ? all_yes : all_no) += 1;
  }
  if (all_yes == 0 || all_no == 0) return 0.5;
  double area = 0, no_below = 0;
  for (size_t bin = 0; bin < kAucBins; ++bin) {
    area += yes[bin] * (no_below + no[bin] / 2);
    no_below += no[bin];
  }
  return area / (all_yes * all_no);
}

TemperatureTable TemperatureTable::Identity(int64_t block_size) {
  TemperatureTable table;
  table.temperatures_.assign(static_cast<size_t>(block_size), 1.0);
  return table;
}

Result<TemperatureTable> TemperatureTable::Create(std::vector<double> temperatures) {
  if (temperatures.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "a temperature table is empty");
  }
  for (size_t i = 0; i < temperatures.size(); ++i) {
    if (!(temperatures[i] >= kLowest && temperatures[i] <= kHighest)) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "temperature {} of draft {} is outside [{}, {}]", temperatures[i], i + 1,
                       kLowest, kHighest);
    }
  }
  TemperatureTable table;
  table.temperatures_ = std::move(temperatures);
  return table;
}

void TemperatureTable::Survival(std::span<const float> confidence, std::span<double> out) const {
  double survival = 1;
  for (size_t k = 0; k < confidence.size(); ++k) {
    survival *= Conditional(confidence[k], temperatures_[k]);
    out[k] = survival;
  }
}

Result<TemperatureTable> FitTemperatures(std::span<const CalibrationRound> rounds,
                                         int64_t block_size) {
  if (rounds.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "temperatures cannot be fitted to no rounds");
  }
  for (const CalibrationRound& round : rounds) {
    if (std::ssize(round.confidence) != block_size || round.verified != block_size ||
        round.accepted < 0 || round.accepted > block_size) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "a round of {} confidences, {} verified and {} accepted drafts; a fit needs "
                       "blocks of {}, verified in full",
                       round.confidence.size(), round.verified, round.accepted, block_size);
    }
  }
  std::vector<double> temperatures, before(rounds.size(), 1.0);
  for (size_t k = 0; k < static_cast<size_t>(block_size); ++k) {
    double best = 1, best_ece = EceAt(rounds, before, k, 1);
    double up = 1;
    for (int step = 0; step < kGridSteps; ++step) {
      up *= kGridRatio;
      for (const double temperature : {up, 1 / up}) {
        const double ece = EceAt(rounds, before, k, temperature);
        if (ece < best_ece) {
          best = temperature;
          best_ece = ece;
        }
      }
    }
    temperatures.push_back(best);
    for (size_t i = 0; i < rounds.size(); ++i) {
      before[i] *= Conditional(rounds[i].confidence[k], best);
    }
  }
  return TemperatureTable::Create(std::move(temperatures));
}

}  // namespace deepinfer::spec
