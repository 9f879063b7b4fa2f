#include "sampling/acceptance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "sampling/sampler.h"
#include "tests/support/chi_square.h"

namespace deepinfer {
namespace {

constexpr size_t kVocabulary = 32;
constexpr uint64_t kSeed = 99;

std::vector<float> TargetLogits() {
  std::vector<float> logits(kVocabulary);
  for (size_t i = 0; i < kVocabulary; ++i) logits[i] = static_cast<float>((i * 13) % 32) * 0.1f;
  return logits;
}

// Prefers other tokens than the target does.
std::vector<float> DraftLogits() {
  std::vector<float> logits(kVocabulary);
  for (size_t i = 0; i < kVocabulary; ++i) logits[i] = static_cast<float>((i * 7) % 32) * 0.12f;
  return logits;
}

std::vector<float> LogProbabilities(const std::vector<float>& logits,
                                    const SamplingParams& params) {
  std::vector<float> out(logits.size());
  EXPECT_TRUE(Sampler().LogProbabilities({.logits = logits}, params, out).has_value());
  return out;
}

std::vector<double> Probabilities(const std::vector<float>& log_p) {
  std::vector<double> p;
  for (const float x : log_p) p.push_back(std::exp(double{x}));
  return p;
}

struct Experiment {
  ChiSquare test;
  double acceptance = 0;
};

// Proposals from DraftLogits, judged by `verify`, against the target's distribution.
Experiment Verify(const SamplingParams& target, const SamplingParams& draft,
                  const std::function<RatioOutcome(const RatioRow&)>& verify, int draws = 100000) {
  const std::vector<float> log_p = LogProbabilities(TargetLogits(), target);
  const std::vector<float> log_q = LogProbabilities(DraftLogits(), draft);
  const std::vector<float> draft_logits = DraftLogits();
  Sampler sampler;
  std::vector<int> counts(kVocabulary);
  int accepted = 0;
  for (int64_t position = 0; position < draws; ++position) {
    const SampleRow row{.logits = draft_logits, .position = position, .stream = Stream::kDraft};
    SamplingParams seeded = draft;
    seeded.seq_seed = kSeed;
    const int32_t proposal = sampler.Sample(row, seeded).value();
    const RatioOutcome outcome = verify({log_p, log_q, proposal, kSeed, position});
    EXPECT_TRUE(!outcome.accepted || outcome.token == proposal);
    accepted += outcome.accepted ? 1 : 0;
    ++counts[static_cast<size_t>(outcome.token)];
  }
  return {TestCounts(counts, Probabilities(log_p)), static_cast<double>(accepted) / draws};
}

TEST(RatioTest, OutputFollowsTheTargetWhateverTheDrafterPrefers) {
  for (const SamplingParams& target :
       {SamplingParams{.temperature = 1}, SamplingParams{.temperature = 0.6, .top_k = 9},
        SamplingParams{.temperature = 1.5, .top_p = 0.8}}) {
    for (const SamplingParams& draft :
         {SamplingParams{.temperature = 1}, SamplingParams{.temperature = 0.5, .top_k = 5},
          SamplingParams{}}) {
      const Experiment result = Verify(target, draft, RatioTest);
      EXPECT_LT(result.test.statistic, result.test.bound)
          << "target T " << target.temperature << " draft T " << draft.temperature;
    }
  }
}

TEST(RatioTest, AcceptsAsOftenAsTheDistributionsOverlap) {
  const SamplingParams params{.temperature = 1};
  const std::vector<double> p = Probabilities(LogProbabilities(TargetLogits(), params));
  const std::vector<double> q = Probabilities(LogProbabilities(DraftLogits(), params));
  double overlap = 0;
  for (size_t i = 0; i < p.size(); ++i) overlap += std::min(p[i], q[i]);
  EXPECT_NEAR(Verify(params, params, RatioTest).acceptance, overlap, 5 * 0.5 / std::sqrt(1e5));
}

// What keeps the test above honest: noise shared between the proposal and the draw that replaces it
// is a bias of a few percent, and the same statistic shows it.
TEST(RatioTest, NoiseSharedWithTheProposalIsCaughtAsBias) {
  const SamplingParams params{.temperature = 1};
  const Experiment result = Verify(params, params, [](const RatioRow& row) {
    RatioOutcome outcome = RatioTest(row);
    if (!outcome.accepted) {
      outcome.token = DrawResidual(row, RandomStream(row.seed, row.position, Stream::kDraft));
    }
    return outcome;
  });
  EXPECT_FALSE(result.test.Fits()) << result.test.statistic;
}

TEST(RatioTest, CertainProposalsAreAcceptedWithTheTargetsProbability) {
  const std::vector<float> log_p = LogProbabilities(TargetLogits(), {.temperature = 1});
  std::vector<int> counts(kVocabulary);
  int accepted = 0;
  constexpr int kDraws = 100000;
  for (int64_t position = 0; position < kDraws; ++position) {
    const RatioOutcome outcome = RatioTest({log_p, {}, 5, kSeed, position});
    EXPECT_EQ(outcome.accepted, outcome.token == 5) << "the residual has no proposal in it";
    accepted += outcome.accepted ? 1 : 0;
    ++counts[static_cast<size_t>(outcome.token)];
  }
  const std::vector<double> p = Probabilities(log_p);
  EXPECT_TRUE(TestCounts(counts, p).Fits());
  EXPECT_NEAR(accepted, p[5] * kDraws, 5 * std::sqrt(p[5] * kDraws));
}

TEST(RatioTest, EqualDistributionsAcceptEverythingAndFallBackToTheTarget) {
  const std::vector<float> log_p = LogProbabilities(TargetLogits(), {.temperature = 1});
  std::vector<int> counts(kVocabulary);
  for (int64_t position = 0; position < 20000; ++position) {
    const RatioRow row{log_p, log_p, static_cast<int32_t>(position % 32), kSeed, position};
    EXPECT_TRUE(RatioTest(row).accepted);
    ++counts[static_cast<size_t>(
        DrawResidual(row, RandomStream(kSeed, position, Stream::kResidual)))];
  }
  EXPECT_TRUE(TestCounts(counts, Probabilities(log_p)).Fits());
}

TEST(RatioTest, TokensTheTargetExcludesAreNeverAccepted) {
  const std::vector<float> log_p = LogProbabilities(TargetLogits(), {.temperature = 1, .top_k = 3});
  const std::vector<float> log_q = LogProbabilities(DraftLogits(), {.temperature = 1});
  for (int64_t position = 0; position < 1000; ++position) {
    const RatioOutcome outcome = RatioTest({log_p, log_q, 0, kSeed, position});
    EXPECT_FALSE(outcome.accepted);
    EXPECT_TRUE(std::isfinite(log_p[static_cast<size_t>(outcome.token)]));
  }
}

// A model whose logits depend on all tokens before.
std::vector<float> ModelLogits(const std::vector<int32_t>& tokens, uint64_t salt) {
  uint64_t hash = salt;
  for (const int32_t token : tokens) hash = ChildSeed(hash, token + 1);
  std::vector<float> logits(kVocabulary);
  for (size_t i = 0; i < kVocabulary; ++i) {
    logits[i] = static_cast<float>(ChildSeed(hash, static_cast<int64_t>(i) + 100) % 64) * 0.05f;
  }
  return logits;
}

std::vector<int32_t> Generate(const SamplingParams& params, size_t length,
                              const std::function<size_t(size_t)>& depth, uint64_t drafter) {
  Sampler sampler;
  TokenHistory history;
  std::vector<int32_t> tokens;
  while (tokens.size() < length) {
    std::vector<int32_t> sequence = tokens;
    std::vector<int32_t> drafts, targets;
    const auto draw = [&](uint64_t salt) {
      const std::vector<float> logits = ModelLogits(sequence, salt);
      const int64_t position = static_cast<int64_t>(sequence.size());
      return sampler.Sample({.logits = logits, .position = position, .history = &history}, params)
          .value();
    };
    // Each row's history ends with the drafts before it.
    for (size_t k = 0; k <= depth(tokens.size()); ++k) {
      targets.push_back(draw(1));
      drafts.push_back(draw(drafter));
      sequence.push_back(drafts.back());
      history.Append(drafts.back());
    }
    const std::span<const int32_t> judged = std::span(drafts).first(drafts.size() - 1);
    const int64_t accepted = CoupledAccepted(judged, targets);
    history.Rollback(static_cast<int64_t>(drafts.size()));
    for (int64_t k = 0; k <= accepted; ++k) {
      tokens.push_back(targets[static_cast<size_t>(k)]);
      history.Append(tokens.back());
    }
  }
  tokens.resize(length);
  return tokens;
}

TEST(CoupledAcceptance, OutputDoesNotDependOnDrafterOrDepth) {
  for (double temperature : {0.0, 1.0}) {
    const SamplingParams params{.temperature = temperature,
                                .top_p = 0.9,
                                .seq_seed = 8,
                                .repetition_penalty = 1.2,
                                .frequency_penalty = 0.3};
    const auto plain = Generate(params, 80, [](size_t) { return size_t{0}; }, 1);
    for (uint64_t drafter : {1, 2, 3}) {
      for (size_t depth : {1, 3, 5}) {
        EXPECT_EQ(Generate(params, 80, [&](size_t) { return depth; }, drafter), plain);
      }
      EXPECT_EQ(Generate(params, 80, [](size_t done) { return done * 7 % 6; }, drafter), plain);
    }
  }
}

TEST(CoupledAcceptance, EndsAtTheFirstDifference) {
  const std::vector<int32_t> targets = {4, 5, 6, 7};
  EXPECT_EQ(CoupledAccepted(std::vector<int32_t>{4, 5, 6}, targets), 3);
  EXPECT_EQ(CoupledAccepted(std::vector<int32_t>{4, 9, 6}, targets), 1);
  EXPECT_EQ(CoupledAccepted(std::vector<int32_t>{9, 5, 6}, targets), 0);
  EXPECT_EQ(CoupledAccepted({}, targets), 0);
}

}  // namespace
}  // namespace deepinfer
