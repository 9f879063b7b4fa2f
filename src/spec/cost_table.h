// What a step costs: seconds of a verification by its tokens, of a draft by its sequences. Measured
// on the device at start, or simulated. Source: spec algorithms section 1.4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace deepinfer::spec {

struct CostPoint {
  int64_t count = 0;   // tokens or sequences, >= 1
  double seconds = 0;  // > 0
  friend bool operator==(const CostPoint&, const CostPoint&) = default;
};

// Seconds as a function of a count that never falls. Immutable but for assignment.
class CostCurve {
 public:
  // No points: Create and FromSamples make the usable ones.
  CostCurve() = default;

  // Counts up to `padded_until` (0: none) cost what the next point's count costs, as graphs
  // captured for some sizes do; above it, costs are interpolated between points. `padded_until` is
  // the count of a point; the range up to the first point above it costs what that point does.
  // Errors: no points, counts that do not ascend from 1 on, seconds that fall, are not positive or
  // not finite, a padded_until that is no point's count.
  static Result<CostCurve> Create(std::vector<CostPoint> points, int64_t padded_until = 0);

  // From measurements in any order, several of a count: the median of each count, raised to the
  // largest of the smaller counts, since a measured cost that falls is noise.
  static Result<CostCurve> FromSamples(std::span<const CostPoint> samples,
                                       int64_t padded_until = 0);

  bool empty() const { return points_.empty(); }
  const std::vector<CostPoint>& points() const { return points_; }
  int64_t padded_until() const { return padded_until_; }

  // 0 for count 0; the first point's for smaller counts; beyond the last point its slope goes on
  // (with a single point: seconds in proportion). !empty().
  double At(int64_t count) const;

  friend bool operator==(const CostCurve&, const CostCurve&) = default;

 private:
  std::vector<CostPoint> points_;
  int64_t padded_until_ = 0;
};

struct CostTable {
  // Says on what the costs were measured; a table of another device is refused.
  std::string device;
  CostCurve verify;  // tokens of the target's pass -> seconds
  CostCurve draft;   // sequences that draft -> seconds
  friend bool operator==(const CostTable&, const CostTable&) = default;
};

// As JSON (docs/speculation.md, "Files"). Reading what was written gives the same table.
std::string CostTableJson(const CostTable& table);
// Errors name the member and its value: no JSON, an unknown or missing member, another device, what
// CostCurve::Create refuses.
Result<CostTable> ParseCostTable(std::string_view text, std::string_view device);

}  // namespace deepinfer::spec
