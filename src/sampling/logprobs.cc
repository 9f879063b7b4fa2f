#include "sampling/logprobs.h"

#include <algorithm>

#include "sampling/row_kernels.h"

namespace deepinfer {

void FillLogprobs(const RowView& row, const Scale& scale, const Cut& cut, uint64_t mass,
                  int32_t chosen, int64_t top_count, RowScratch& scratch, TokenLogprobs& out) {
  const double log_mass = LogMass(mass);
  const auto logprob = [&](const Candidate& c) {
    const bool is_kept = cut.Keeps(c);
    return TokenLogprob{c.token, is_kept ? static_cast<float>(scale.Scaled(c.logit) - log_mass)
                                         : -std::numeric_limits<float>::infinity()};
  };
  const Candidate token{row.logits[static_cast<size_t>(chosen)], chosen};
  out.chosen = logprob(token);
  out.rank = CountBefore(row, token) + 1;
  out.top.clear();
  if (top_count == 0) return;
  const std::span<Candidate> top = SelectTop(row, top_count, cut.last.logit, scratch);
  std::sort(top.begin(), top.end(), Before);
  for (const Candidate& c : top) {
    if (cut.Keeps(c)) out.top.push_back(logprob(c));
  }
}

Status RawLogprobs(std::span<const float> logits, int32_t chosen, int64_t top_count,
                   RowScratch& scratch, TokenLogprobs& out) {
  if (chosen < 0 || static_cast<size_t>(chosen) >= logits.size()) {
    return MakeError(ErrorCode::kInvalidArgument, "token id {} is outside 0 to {}", chosen,
                     static_cast<int64_t>(logits.size()) - 1);
  }
  DI_ASSIGN_OR_RETURN(const RowView row, ScanRow(logits, scratch));
  const Scale scale{row.max, 1};
  const Cut everything;
  const uint64_t mass = TotalMass(row, scale, everything.last.logit);
  FillLogprobs(row, scale, everything, mass, chosen, top_count, scratch, out);
  return {};
}

}  // namespace deepinfer
