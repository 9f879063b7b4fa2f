#include "sampling/acceptance.h"

#include <limits>

#include "sampling/elementary.h"

namespace deepinfer {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double LogQ(const RatioRow& row, size_t token) {
  if (!row.log_q.empty()) return row.log_q[token];
  return token == static_cast<size_t>(row.draft) ? 0 : kNever;
}

// log max(p - q, 0).
double ResidualLogit(double log_p, double log_q) {
  if (!(log_q < log_p)) return kNever;
  if (log_q == kNever) return log_p;
  const double ratio = ExpDouble(log_q - log_p);
  // log1p(-ratio): the series where 1 - ratio would lose digits of a small ratio.
  if (ratio < 0.25) return log_p + LogFromRatio(-ratio / (2 - ratio));
  return ratio < 1 ? log_p + LogDouble(1 - ratio) : kNever;
}

template <typename Logit>
int32_t DrawFrom(size_t count, const RandomStream& stream, Logit logit) {
  int32_t best = -1;
  double best_score = kNever;
  for (size_t i = 0; i < count; ++i) {
    const double z = logit(i);
    // No noise can win from here.
    if (z == kNever || z + kMaxGumbel < best_score) continue;
    const double score = z + stream.Gumbel(static_cast<int32_t>(i));
    if (score > best_score) {
      best_score = score;
      best = static_cast<int32_t>(i);
    }
  }
  return best;
}

}  // namespace

int64_t CoupledAccepted(std::span<const int32_t> drafts, std::span<const int32_t> targets) {
  size_t accepted = 0;
  while (accepted < drafts.size() && drafts[accepted] == targets[accepted]) ++accepted;
  return static_cast<int64_t>(accepted);
}

RatioOutcome RatioTest(const RatioRow& row) {
  const size_t draft = static_cast<size_t>(row.draft);
  const double log_ratio = static_cast<double>(row.log_p[draft]) - LogQ(row, draft);
  const double u = RandomStream(row.seed, row.position, Stream::kAccept).Uniform();
  if (log_ratio >= 0 || LogDouble(u) < log_ratio) return {true, row.draft};
  return {false, DrawResidual(row, RandomStream(row.seed, row.position, Stream::kResidual))};
}

int32_t DrawResidual(const RatioRow& row, const RandomStream& stream) {
  const int32_t token = DrawFrom(row.log_p.size(), stream, [&](size_t i) {
    return ResidualLogit(row.log_p[i], LogQ(row, i));
  });
  if (token >= 0) return token;
  return DrawFrom(row.log_p.size(), stream, [&](size_t i) { return double{row.log_p[i]}; });
}

}  // namespace deepinfer
