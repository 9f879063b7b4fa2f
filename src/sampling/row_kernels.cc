#include "sampling/row_kernels.h"

#include <algorithm>
#include <cstring>

#include "base/multiversion.h"

namespace deepinfer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kLanes = 16;

DEEPINFER_INLINE float Larger(float a, float b) { return b > a ? b : a; }

// Maxima of `blocks` whole blocks; whether every value is below +infinity.
DEEPINFER_MULTIVERSION bool ScanBlocks(const float* z, int64_t blocks,
                                       float* __restrict block_max) {
  int32_t broken[kLanes] = {};
  for (int64_t block = 0; block < blocks; ++block, z += kBlockTokens) {
    float max[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      const float x0 = z[l], x1 = z[l + 16], x2 = z[l + 32], x3 = z[l + 48];
      max[l] = Larger(Larger(x0, x1), Larger(x2, x3));
      const bool valid = (x0 < kInfinity) & (x1 < kInfinity) & (x2 < kInfinity) & (x3 < kInfinity);
      broken[l] |= valid ? 0 : 1;
    }
    for (int l = 0; l < 8; ++l) max[l] = Larger(max[l], max[l + 8]);
    for (int l = 0; l < 4; ++l) max[l] = Larger(max[l], max[l + 4]);
    block_max[block] = Larger(Larger(max[0], max[2]), Larger(max[1], max[3]));
  }
  int32_t any = 0;
  for (int l = 0; l < kLanes; ++l) any |= broken[l];
  return any == 0;
}

// Short loops, since compilers vectorise no longer ones around Exp.
DEEPINFER_INLINE void WeighBlock(const float* z, const Scale& scale, float lowest, float* weight) {
  const Scale local = scale;
  for (int i = 0; i < kBlockTokens; ++i) weight[i] = local.Weight(z[i]);
  for (int i = 0; i < kBlockTokens; ++i) weight[i] = z[i] >= lowest ? weight[i] : 0.0f;
}

DEEPINFER_MULTIVERSION uint64_t MassOfBlock(const float* z, const Scale& scale, float lowest) {
  float weight[kBlockTokens];
  WeighBlock(z, scale, lowest, weight);
  uint64_t sum = 0;
  for (int i = 0; i < kBlockTokens; ++i) sum += Scale::MassOfWeight(weight[i]);
  return sum;
}

DEEPINFER_MULTIVERSION void MaskWords(const uint32_t* mask, int64_t words, float* z) {
  for (int64_t w = 0; w < words; ++w, z += 32) {
    const uint32_t word = mask[w];
    if (word == ~uint32_t{0}) continue;
    for (int i = 0; i < 32; ++i) z[i] = (word >> i & 1u) != 0 ? z[i] : -kInfinity;
  }
}

// A token's score is Scaled + Gumbel(u) <= Scaled - log(u), since -log1p(-u) >= u. So it reaches
// `best` only if u <= e^Scaled * e^-best. The test below is that comparison in fp32 with a lower
// bound of u from its leading bits; Slack exceeds all its rounding errors (2^-16) by far.
constexpr float kSlack = 1 + 0x1p-10f;

// The right side without e^Scaled.
float Chance(double best) { return Exp(static_cast<float>(-best)) * kSlack; }

DEEPINFER_INLINE bool MayWin(uint32_t leading_bits, float weight, float chance) {
  const float u = static_cast<float>(static_cast<int32_t>(leading_bits >> 1)) * 0x1p-31f;
  return u <= weight * chance;
}

struct DrawTest {
  Scale scale;
  float lowest;
  float chance;
};

// For a whole block that begins with token 2 * first_pair: pass[i] is nonzero where token i of it
// may win. Returns whether any may.
DEEPINFER_MULTIVERSION bool TestBlock(const float* z, const DrawTest& test,
                                      const std::array<uint32_t, 4>& counter,
                                      const std::array<uint32_t, 2>& key, int32_t first_pair,
                                      int32_t* pass) {
  constexpr int kPairs = kBlockTokens / 2;
  uint32_t c0[kPairs], c1[kPairs], c2[kPairs], c3[kPairs];
  for (int l = 0; l < kPairs; ++l) {
    c0[l] = static_cast<uint32_t>(first_pair + l);
    c1[l] = counter[1];
    c2[l] = counter[2];
    c3[l] = counter[3];
  }
  uint32_t k0 = key[0];
  uint32_t k1 = key[1];
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (int l = 0; l < kPairs; ++l) {
      const uint64_t a = uint64_t{kPhiloxMultiplier0} * c0[l];
      const uint64_t b = uint64_t{kPhiloxMultiplier1} * c2[l];
      c0[l] = static_cast<uint32_t>(b >> 32) ^ c1[l] ^ k0;
      c1[l] = static_cast<uint32_t>(b);
      c2[l] = static_cast<uint32_t>(a >> 32) ^ c3[l] ^ k1;
      c3[l] = static_cast<uint32_t>(a);
    }
    k0 += kPhiloxWeyl0;
    k1 += kPhiloxWeyl1;
  }
  uint32_t leading[kBlockTokens];
  for (int l = 0; l < kPairs; ++l) {
    leading[2 * l] = c0[l];
    leading[2 * l + 1] = c2[l];
  }
  float weight[kBlockTokens];
  WeighBlock(z, test.scale, test.lowest, weight);
  int32_t any = 0;
  for (int i = 0; i < kBlockTokens; ++i) {
    pass[i] = MayWin(leading[i], weight[i], test.chance) ? 1 : 0;
    any |= pass[i];
  }
  return any != 0;
}

// The best score so far.
class Race {
 public:
  Race(const Scale& scale, const Cut& cut, const RandomStream& stream, int32_t first)
      : scale_(scale), cut_(cut), stream_(stream), token_(first) {
    score_ = stream.Gumbel(first);  // the scaled logit of the best token is 0
    chance_ = Chance(score_);
  }

  void Enter(const Candidate& c) {
    if (!cut_.Keeps(c)) return;
    const uint64_t bits = stream_.Bits(c.token);
    if (!MayWin(static_cast<uint32_t>(bits >> 32), scale_.Weight(c.logit), chance_)) return;
    const double score = scale_.Scaled(c.logit) + GumbelFromBits(bits);
    if (score < score_ || (score == score_ && c.token > token_)) return;
    score_ = score;
    token_ = c.token;
    chance_ = Chance(score_);
  }

  // Whether a token with this logit has no chance whatever its noise.
  bool IsHopeless(float logit) const {
    return logit < cut_.last.logit || scale_.Scaled(logit) + kMaxGumbel < score_;
  }
  float chance() const { return chance_; }
  int32_t token() const { return token_; }

 private:
  const Scale& scale_;
  const Cut& cut_;
  const RandomStream& stream_;
  int32_t token_;
  double score_ = 0;
  float chance_ = 0;
};

int32_t FirstToken(size_t block) { return static_cast<int32_t>(block * kBlockTokens); }

// The logits of a block: kBlockTokens, or fewer in the last one.
std::span<const float> Block(const RowView& row, size_t block) {
  const size_t first = block * kBlockTokens;
  return row.logits.subspan(first, std::min<size_t>(kBlockTokens, row.logits.size() - first));
}

}  // namespace

Status CheckBest(const Candidate& best, int64_t tokens) {
  if (!(best.logit < kInfinity)) {
    return MakeError(ErrorCode::kInternal, "the logit of token {} is {}", best.token, best.logit);
  }
  if (best.logit == -kInfinity) {
    return MakeError(ErrorCode::kInternal, "none of the {} logits is finite", tokens);
  }
  return {};
}

Result<RowView> ScanRow(std::span<const float> logits, RowScratch& scratch) {
  const size_t whole = logits.size() / kBlockTokens;
  const std::span<const float> rest = logits.subspan(whole * kBlockTokens);
  scratch.block_max.resize(whole + (rest.empty() ? 0 : 1));
  bool valid = ScanBlocks(logits.data(), static_cast<int64_t>(whole), scratch.block_max.data());
  if (!rest.empty()) scratch.block_max.back() = -kInfinity;
  for (const float z : rest) {
    scratch.block_max.back() = Larger(scratch.block_max.back(), z);
    valid = valid && z < kInfinity;
  }
  if (!valid) {
    const auto bad =
        std::find_if_not(logits.begin(), logits.end(), [](float x) { return x < kInfinity; });
    DI_RETURN_IF_ERROR(
        CheckBest({*bad, static_cast<int32_t>(bad - logits.begin())}, std::ssize(logits)));
  }
  const auto best = std::max_element(scratch.block_max.begin(), scratch.block_max.end());
  const float max = best == scratch.block_max.end() ? -kInfinity : *best;
  DI_RETURN_IF_ERROR(CheckBest({max, 0}, std::ssize(logits)));
  RowView row{logits, scratch.block_max, max, 0};
  const auto from = logits.begin() + (best - scratch.block_max.begin()) * kBlockTokens;
  row.max_token = static_cast<int32_t>(std::find(from, logits.end(), max) - logits.begin());
  return row;
}

uint64_t TotalMass(const RowView& row, const Scale& scale, float lowest) {
  uint64_t sum = 0;
  for (size_t b = 0; b < row.block_max.size(); ++b) {
    const float max = row.block_max[b];
    if (max < lowest || scale.Scaled(max) < kNoMass) continue;
    const auto block = Block(row, b);
    if (block.size() == kBlockTokens) {
      sum += MassOfBlock(block.data(), scale, lowest);
      continue;
    }
    for (const float z : block) sum += z >= lowest ? scale.Mass(z) : 0;
  }
  return sum;
}

uint64_t TotalMass(const RowView& row, const Scale& scale, const Cut& cut) {
  if (cut.last.token == Cut().last.token) return TotalMass(row, scale, cut.last.logit);
  uint64_t outside = 0;  // tokens that only their ids put behind the cut
  for (size_t b = 0; b < row.block_max.size(); ++b) {
    if (row.block_max[b] < cut.last.logit) continue;
    int32_t id = FirstToken(b);
    for (const float z : Block(row, b)) {
      outside += z == cut.last.logit && id > cut.last.token ? 1 : 0;
      ++id;
    }
  }
  return TotalMass(row, scale, cut.last.logit) - outside * scale.Mass(cut.last.logit);
}

std::span<Candidate> Gather(const RowView& row, float low, float below, RowScratch& scratch) {
  // One more, since the loop writes before it knows whether the entry stays.
  if (scratch.candidates.size() <= row.logits.size()) {
    scratch.candidates.resize(row.logits.size() + 1);
  }
  Candidate* out = scratch.candidates.data();
  for (size_t b = 0; b < row.block_max.size(); ++b) {
    if (row.block_max[b] < low) continue;
    int32_t token = FirstToken(b);
    for (const float z : Block(row, b)) {
      *out = {z, token++};
      out += ((z >= low) & (z < below)) ? 1 : 0;
    }
  }
  return {scratch.candidates.data(), out};
}

int64_t CountBefore(const RowView& row, const Candidate& token) {
  int64_t count = 0;
  for (size_t b = 0; b < row.block_max.size(); ++b) {
    if (row.block_max[b] < token.logit) continue;
    int32_t id = FirstToken(b);
    for (const float z : Block(row, b)) count += Before({z, id++}, token) ? 1 : 0;
  }
  return count;
}

int32_t DrawToken(const RowView& row, const Scale& scale, const Cut& cut,
                  const RandomStream& stream) {
  Race race(scale, cut, stream, row.max_token);
  const std::array<uint32_t, 4> counter = stream.counter();
  const std::array<uint32_t, 2> key = stream.key();
  int32_t pass[kBlockTokens];
  for (size_t b = 0; b < row.block_max.size(); ++b) {
    if (race.IsHopeless(row.block_max[b])) continue;
    const int32_t first = FirstToken(b);
    const auto block = Block(row, b);
    const bool is_whole = block.size() == kBlockTokens;
    const DrawTest test{scale, cut.last.logit, race.chance()};
    if (is_whole && !TestBlock(block.data(), test, counter, key, first / 2, pass)) continue;
    for (size_t i = 0; i < block.size(); ++i) {
      if (!is_whole || pass[i] != 0) race.Enter({block[i], first + static_cast<int32_t>(i)});
    }
  }
  return race.token();
}

void ApplyBitMask(std::span<const uint32_t> mask, std::span<float> logits) {
  const int64_t whole = static_cast<int64_t>(logits.size()) / 32;
  MaskWords(mask.data(), whole, logits.data());
  for (size_t i = static_cast<size_t>(whole) * 32; i < logits.size(); ++i) {
    if ((mask[i / 32] >> (i % 32) & 1u) == 0) logits[i] = -kInfinity;
  }
}

}  // namespace deepinfer
