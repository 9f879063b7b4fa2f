#include "sampling/selection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

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

// The last token of the list, which is in no order, with at most `limit` mass before it. Halves the
// range that holds it; each half is partitioned, never sorted.
Cut LastWithin(std::span<Candidate> list, const Scale& scale, uint64_t limit) {
  size_t low = 0;  // that many are within at least
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
  return Cut{list[low - 1]};
}

// A range of logits, low <= z < below, that holds the last token with at most `limit` before it.
struct Band {
  float low;
  float below;
  uint64_t low_mass;  // of all logits >= low; above the limit
  uint64_t before;    // of all logits >= below; at most the limit

  void Split(const RowView& row, const Scale& scale, float at, uint64_t limit) {
    const uint64_t mass = TotalMass(row, scale, at);
    (mass > limit ? low : below) = at;
    (mass > limit ? low_mass : before) = mass;
  }
};

// `limit` is below the mass of the row.
Band FindBand(const RowView& row, const Scale& scale, uint64_t limit) {
  constexpr uint64_t kEnoughTokens = 2048;
  Band band{kLowest, std::nextafter(row.max, std::numeric_limits<float>::infinity()), 0, 0};
  // Tokens further off than 32 have no mass, so that the last round ends this.
  for (double distance = 2; band.low_mass == 0; distance *= 2) {
    band.Split(row, scale, SmallestLogit(scale, -distance), limit);
  }
  // The quotient bounds the number of tokens in the band.
  while (band.low_mass - band.before > kEnoughTokens * scale.Mass(band.low)) {
    const float middle = band.low + (band.below - band.low) / 2;
    if (middle <= band.low || middle >= band.below) break;  // equal logits
    band.Split(row, scale, middle, limit);
  }
  return band;
}

Cut SelectMass(const RowView& row, const Scale& scale, const Cut& cut, double top_p,
               RowScratch& scratch) {
  const uint64_t total = TotalMass(row, scale, cut);
  const uint64_t limit = MassLimit(top_p, total);
  if (limit >= total) return cut;
  const Band band = FindBand(row, scale, limit);
  return LastWithin(Gather(row, band.low, band.below, scratch), scale, limit - band.before);
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
  std::span<Candidate> list = Gather(row, lowest, std::numeric_limits<float>::infinity(), scratch);
  if (list.size() <= wanted) return list;
  std::nth_element(list.begin(), list.begin() + (count - 1), list.end(), Before);
  return list.first(wanted);
}

Cut SelectTokens(const RowView& row, const Scale& scale, const SamplingParams& params,
                 RowScratch& scratch) {
  Cut cut;
  if (params.min_p > 0) cut.last.logit = SmallestLogit(scale, LogDouble(params.min_p));
  if (params.top_k == 0 || params.top_k >= static_cast<int64_t>(row.logits.size())) {
    return params.top_p < 1 ? SelectMass(row, scale, cut, params.top_p, scratch) : cut;
  }
  const std::span<Candidate> list = SelectTop(row, params.top_k, cut.last.logit, scratch);
  if (params.top_p < 1) {
    return LastWithin(list, scale, MassLimit(params.top_p, ListMass(list, scale)));
  }
  return Cut{*std::max_element(list.begin(), list.end(), Before)};
}

}  // namespace deepinfer
