#include "spec/cost_table.h"

#include <algorithm>
#include <cmath>

namespace deepinfer::spec {

Result<CostCurve> CostCurve::Create(std::vector<CostPoint> points, int64_t padded_until) {
  if (points.empty()) return MakeError(ErrorCode::kInvalidArgument, "a cost curve has no points");
  CostPoint before{.count = 0, .seconds = 0};
  bool is_point = padded_until == 0;
  for (const CostPoint& point : points) {
    if (point.count <= before.count) {
      return MakeError(ErrorCode::kInvalidArgument, "count {} follows {}: counts ascend from 1 on",
                       point.count, before.count);
    }
    if (!std::isfinite(point.seconds) || point.seconds <= 0 || point.seconds < before.seconds) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{} seconds for count {} are not a positive number of at least {}",
                       point.seconds, point.count, before.seconds);
    }
    is_point = is_point || point.count == padded_until;
    before = point;
  }
  if (!is_point) {
    return MakeError(ErrorCode::kInvalidArgument, "padded_until {} is not the count of a point",
                     padded_until);
  }
  CostCurve curve;
  curve.points_ = std::move(points);
  curve.padded_until_ = padded_until;
  return curve;
}

Result<CostCurve> CostCurve::FromSamples(std::span<const CostPoint> samples, int64_t padded_until) {
  std::vector<CostPoint> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end(), [](const CostPoint& a, const CostPoint& b) {
    return a.count != b.count ? a.count < b.count : a.seconds < b.seconds;
  });
  std::vector<CostPoint> points;
  for (size_t first = 0; first < sorted.size();) {
    size_t end = first;
    while (end < sorted.size() && sorted[end].count == sorted[first].count) ++end;
    points.push_back(sorted[first + (end - first) / 2]);
    const size_t last = points.size() - 1;
    if (last > 0) points[last].seconds = std::max(points[last].seconds, points[last - 1].seconds);
    first = end;
  }
  return Create(std::move(points), padded_until);
}

double CostCurve::At(int64_t count) const {
  if (count <= 0) return 0;
  const auto above =
      std::lower_bound(points_.begin(), points_.end(), count,
                       [](const CostPoint& point, int64_t wanted) { return point.count < wanted; });
  const auto line = [count](const CostPoint& a, const CostPoint& b) {
    return a.seconds + (b.seconds - a.seconds) * static_cast<double>(count - a.count) /
                           static_cast<double>(b.count - a.count);
  };
  if (above == points_.end()) {
    if (points_.size() > 1) return line(above[-2], above[-1]);
    return above[-1].seconds * static_cast<double>(count) / static_cast<double>(above[-1].count);
  }
  if (above->count == count || above == points_.begin() || above[-1].count <= padded_until_) {
    return above->seconds;
  }
  return line(above[-1], *above);
}

}  // namespace deepinfer::spec
