#include "bench/timing.h"

namespace deepinfer::bench {

Timing Summarise(std::span<const double> seconds) {
  std::vector<double> sorted(seconds.begin(), seconds.end());
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  const double median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  return {median, sorted.front(), sorted.back(), static_cast<int64_t>(n)};
}

void SetRate(const Timing& timing, double amount, double scale, std::optional<double> ceiling,
             Record& record) {
  const auto rate = [&](double seconds) { return amount / scale / std::max(seconds, 1e-12); };
  record.value = rate(timing.median);
  record.min = rate(timing.max);
  record.max = rate(timing.min);
  record.repetitions = timing.repetitions;
  record.seconds = timing.median;
  record.ceiling = ceiling;
  if (ceiling && *ceiling > 0) record.share = record.value / *ceiling;
}

}  // namespace deepinfer::bench
