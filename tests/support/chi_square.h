// Pearson's test of counts against an exact distribution.
#pragma once

#include <cmath>
#include <limits>
#include <span>

namespace deepinfer {

struct ChiSquare {
  double statistic = 0;
  // Mean + 5 standard deviations of the statistic under the distribution, and a little for few
  // degrees of freedom.
  double bound = 0;
  bool Fits() const { return statistic < bound; }
};

// A count where the probability is 0 fits nothing.
inline ChiSquare TestCounts(std::span<const int> counts, std::span<const double> p) {
  double total = 0;
  for (const int count : counts) total += count;
  ChiSquare out;
  int cells = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) {
      if (counts[i] != 0) out.statistic = std::numeric_limits<double>::infinity();
      continue;
    }
    const double expected = p[i] * total;
    out.statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++cells;
  }
  const double degrees = cells - 1;
  out.bound = degrees + 5 * std::sqrt(2 * degrees) + 5;
  return out;
}

}  // namespace deepinfer
