#include "sampling/selection.h"

#include <algorithm>
#include <bit>

#include "sampling/row_kernels.h"

namespace deepinfer {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();

// Floats as integers of the same order, and back.
int32_t OrderedBits(float x) {
  const int32_t bits = std::bit_cast<int32_t>(x);
  return bits >= 0 ? bits : static_cast<int32_t>(0x80000000u - static_cast<uint32_t>(bits));
}
float FromOrderedBits(int32_t ordered) {
  const uint32_t bits = static_cast<uint32_t>(ordered);
  return std::bit_cast<float>(ordered >= 0 ? bits : 0x80000000u - bits);
}

// The smallest finite float whose scaled value is at least `floor` <= 0. Bisection, since the
// rounded function is monotone but has no exact inverse.
float SmallestLogit(const Scale& scale, double floor) {
  int64_t low = OrderedBits(kLowest);
  int64_t high = OrderedBits(static_cast<float>(scale.max));
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (scale.Scaled(FromOrderedBits(static_cast<int32_t>(middle))) >= floor) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return FromOrderedBits(static_cast<int32_t>(low));
}

uint64_t ListMass(std::span<const Candidate> list, const Scale& scale) {
  uint64_t sum = 0;
  for (const Candidate& c : list) sum += scale.Mass(c.logit);
  return sum;
}

// The largest mass that may stand before a kept token.
uint64_t MassLimit(double top_p, uint64_t total) {
  return static_cast<uint64_t>(top_p * static_cast<double>(total));
}

// Tokens that hold all that top-p keeps: those within a distance of the best one, which grows until
// their mass exceeds the limit.
std::span<Candidate> GatherMass(const RowView& row, const Scale& scale, float lowest,
                                uint64_t limit, RowScratch& scratch) {
  for (const double distance : {3.0, 6.0, 12.0}) {
    const float from = std::max(lowest, SmallestLogit(scale, -distance));
    const std::span<Candidate> list = GatherAbove(row, from, scratch);
    if (ListMass(list, scale) > limit) return list;
  }
  return GatherAbove(row, lowest, scratch);
}

// Cuts the list to the tokens with at most `limit` before them, all of a list that holds less.
// Halves the range that holds the last one; each half is partitioned, never sorted.
Selection SelectMass(std::span<Candidate> list, const Scale& scale, uint64_t limit) {
  size_t low = 0;  // that many are kept at least
  size_t high = list.size();
  uint64_t before = 0;  // mass of the first `low`
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const auto at = [&](size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); };
    std::nth_element(at(low), at(middle), at(high), Before);
    const uint64_t upper = before + ListMass(list.subspan(low, middle - low), scale);
    if (upper > limit) {
      high = middle;
    } else {
      before = upper + scale.Mass(list[middle].logit);
      low = middle + 1;
    }
  }
  // Nothing stands before the best token, so low >= 1; its last step left list[low - 1] in place.
  return {Cut{list[low - 1]}, list.first(low)};
}

}  // namespace

std::span<Candidate> SelectTop(const RowView& row, int64_t count, float lowest,
                               RowScratch& scratch) {
  const size_t wanted = static_cast<size_t>(count);
  if (wanted <= row.block_max.size()) {
    // That many blocks have a token as large as the count-th largest block maximum.
    std::vector<float>& order = scratch.block_order;
    order.assign(row.block_max.begin(), row.block_max.end());
    const auto nth = order.begin() + (count - 1);
    std::nth_element(order.begin(), nth, order.end(), std::greater<>());
    lowest = std::max(lowest, *nth);
  }
  std::span<Candidate> list = GatherAbove(row, lowest, scratch);
  if (list.size() <= wanted) return list;
  std::nth_element(list.begin(), list.begin() + (count - 1), list.end(), Before);
  return list.first(wanted);
}

Selection SelectTokens(const RowView& row, const Scale& scale, const SamplingParams& params,
                       RowScratch& scratch) {
  Selection kept;
  if (params.min_p > 0) kept.cut.last.logit = SmallestLogit(scale, LogDouble(params.min_p));
  const float lowest = kept.cut.last.logit;
  const int64_t size = static_cast<int64_t>(row.logits.size());
  if (params.top_k > 0 && params.top_k < size) {
    kept.listed = SelectTop(row, params.top_k, lowest, scratch);
    kept.cut.last = *std::max_element(kept.listed.begin(), kept.listed.end(), Before);
  }
  if (params.top_p < 1) {
    if (kept.listed.data() != nullptr) {
      const uint64_t limit = MassLimit(params.top_p, ListMass(kept.listed, scale));
      return SelectMass(kept.listed, scale, limit);
    }
    const uint64_t limit = MassLimit(params.top_p, TotalMass(row, scale, lowest));
    return SelectMass(GatherMass(row, scale, lowest, limit, scratch), scale, limit);
  }
  return kept;
}

uint64_t SelectionMass(const RowView& row, const Scale& scale, const Selection& selection) {
  if (selection.listed.data() != nullptr) return ListMass(selection.listed, scale);
  return TotalMass(row, scale, selection.cut.last.logit);
}

}  // namespace deepinfer
