#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <random>

#include "tests/property/sampling/naive_sampler.h"

namespace deepinfer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows with ties, masked tokens, one far leader, huge and subnormal values.
std::vector<float> RandomRow(std::mt19937_64& random, size_t size) {
  std::normal_distribution<float> normal(0, 1);
  const uint64_t kind = random() % 6;
  std::vector<float> row(size);
  for (float& z : row) {
    z = normal(random);
    if (kind == 0) z = std::nearbyint(z * 2);
    if (kind == 1) z *= 8;
    if (kind == 2 && random() % 3 == 0) z = -kInfinity;
    if (kind == 3) z *= random() % 20 == 0 ? 1e37f : 1;
    if (kind == 4) z = 0.25f;
    if (kind == 5) z *= 1e-42f;
  }
  if (random() % 4 == 0) row[random() % size] = 20;
  row[random() % size] = 1;  // never a row without a finite logit
  return row;
}

template <typename T>
T OneOf(std::mt19937_64& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

std::vector<int32_t> RandomIds(std::mt19937_64& random, size_t count, size_t vocabulary) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % vocabulary);
  return ids;
}

SamplingParams RandomFilters(std::mt19937_64& random, size_t vocabulary) {
  SamplingParams params;
  params.temperature = OneOf(random, {0.0, 1.0, 1.0, 0.3, 2.0, 100.0, 1e-5, 1e-300});
  params.top_p = OneOf(random, {1.0, 1.0, 0.95, 0.5, 1e-9, 0.999999, 1 - 0x1p-53});
  params.top_k = OneOf(random, {int64_t{0}, int64_t{0}, int64_t{1}, int64_t{5}, int64_t{80},
                                static_cast<int64_t>(vocabulary), int64_t{1} << 40});
  params.min_p = OneOf(random, {0.0, 0.0, 0.05, 0.5, 1.0, 1e-12, 5e-324});
  params.seq_seed = random();
  params.logprobs = OneOf(random, {int64_t{0}, int64_t{3}, int64_t{20}});
  return params;
}

void AddProcessors(std::mt19937_64& random, size_t vocabulary, SamplingParams& params) {
  params.repetition_penalty = OneOf(random, {1.0, 1.3, 0.7});
  params.frequency_penalty = OneOf(random, {0.0, 0.5, -0.5});
  params.presence_penalty = OneOf(random, {0.0, 1.0});
  params.min_tokens = OneOf(random, {int64_t{0}, int64_t{3}});
  params.stop_token_ids = RandomIds(random, random() % 3, vocabulary);
  params.bad_token_ids = RandomIds(random, random() % 3, vocabulary);
  if (random() % 4 == 0) {
    params.allowed_token_ids = RandomIds(random, 1 + random() % 40, vocabulary);
  }
  for (const int32_t id : {0, 1, 2}) {
    if (random() % 3 == 0 && static_cast<size_t>(id) < vocabulary) {
      params.logit_bias.push_back({id, OneOf(random, {-100.0, 5.0, 0.125})});
    }
  }
}

// What differs, bit for bit, between the fast path and the naive one; empty: nothing.
std::string Difference(const SampleRow& row, const SamplingParams& params,
                       const NaiveResult& expected) {
  // Shared, so that a row also stands the scratch memory of the rows before it.
  static Sampler raw(LogprobsMode::kRaw), processed(LogprobsMode::kProcessed);
  TokenLogprobs raw_logprobs, processed_logprobs;
  const auto token = raw.Sample(row, params, &raw_logprobs);
  const auto again = processed.Sample(row, params, &processed_logprobs);
  if (expected.token < 0) return token || again ? "a token without a finite logit" : "";
  if (!token || !again) return token ? again.error().message : token.error().message;
  if (*token != expected.token || *again != expected.token) {
    return fmt::format("token {} instead of {}", *token, expected.token);
  }
  if (raw_logprobs != expected.raw) return "raw logprobs";
  if (processed_logprobs != expected.processed) return "processed logprobs";
  std::vector<float> log_p(row.logits.size());
  if (!raw.LogProbabilities(row, params, log_p)) return "no log-probabilities";
  return log_p == expected.log_p ? "" : "log-probabilities";
}

std::string DifferenceOfOneCase(std::mt19937_64& random) {
  const size_t size = OneOf(random, {1ul, 2ul, 63ul, 64ul, 65ul, 200ul, 1000ul, 7000ul});
  const std::vector<float> logits = RandomRow(random, size);
  const std::vector<int32_t> prompt = RandomIds(random, random() % 10, size);
  const std::vector<int32_t> output = RandomIds(random, random() % 10, size);
  SamplingParams params = RandomFilters(random, size);
  SampleRow row{.logits = logits, .position = static_cast<int64_t>(random() % 100000)};
  row.stream = OneOf(random, {Stream::kTarget, Stream::kDraft});
  TokenHistory history(prompt);
  for (const int32_t token : output) history.Append(token);
  std::vector<uint32_t> mask((size + 31) / 32);
  for (uint32_t& word : mask) {
    word = OneOf(random, {0u, ~0u, static_cast<uint32_t>(random())});
  }
  if (random() % 2 == 0) {
    AddProcessors(random, size, params);
    row.history = &history;
    row.eos_token = static_cast<int32_t>(random() % size);
    if (random() % 2 == 0) row.grammar_mask = mask;
  }
  const NaiveResult expected = NaiveSampler(row, params, prompt, output).Run();
  return Difference(row, params, expected);
}

RC_GTEST_PROP(SamplerProperty, FastPathEqualsTheNaiveRestatementBitForBit, (uint64_t seed)) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < 30; ++i) RC_ASSERT(DifferenceOfOneCase(random) == "");
}

// Noise decides by a hair: the bounds that skip tokens may not skip the winner. A token that just
// wins or just loses against the best logit, at any distance noise can bridge.
TEST(SamplerProperty, TokensThatBarelyWinAreNotSkipped) {
  constexpr size_t kVocabulary = 20000;
  Sampler sampler;
  int far = 0;
  for (int64_t position = 0; position < 300; ++position) {
    const RandomStream stream(1, position);
    const auto less = [&](int32_t a, int32_t b) { return stream.Gumbel(a) < stream.Gumbel(b); };
    std::vector<int32_t> ids(kVocabulary);
    std::iota(ids.begin(), ids.end(), 0);
    const int32_t weak = *std::min_element(ids.begin(), ids.begin() + 1000, less);
    // Of the whole vocabulary, or of the part of a block at its end.
    const int32_t strong =
        *std::max_element(ids.end() - (position % 2 == 0 ? 20000 : 32), ids.end(), less);
    const double distance = stream.Gumbel(strong) - stream.Gumbel(weak);
    far += distance > 13 ? 1 : 0;
    for (const double hair : {-1e-4, 1e-4}) {
      std::vector<float> logits(kVocabulary, -kInfinity);
      logits[static_cast<size_t>(weak)] = 0;
      logits[static_cast<size_t>(strong)] = static_cast<float>(hair - distance);
      EXPECT_EQ(sampler.Sample(logits, {.temperature = 1, .seq_seed = 1}, position).value(),
                hair > 0 ? strong : weak)
          << "position " << position;
    }
  }
  EXPECT_GT(far, 20);
}

// The release's vocabulary, where bands and whole blocks decide.
TEST(SamplerProperty, FastPathEqualsTheNaiveRestatementAtTheReleasesVocabulary) {
  constexpr size_t kVocabulary = 129280;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<float> logits = RandomRow(random, kVocabulary);
    for (double top_p : {1.0, 0.95, 0.1}) {
      const SamplingParams params{.temperature = OneOf(random, {1.0, 0.7, 5.0}),
                                  .top_p = top_p,
                                  .top_k = OneOf(random, {0l, 0l, 50l, 5000l}),
                                  .seq_seed = seed,
                                  .logprobs = 20};
      const SampleRow row{.logits = logits, .position = 4711};
      EXPECT_EQ(Difference(row, params, NaiveSampler(row, params, {}, {}).Run()), "")
          << "seed " << seed << " top_p " << top_p;
    }
  }
}

RC_GTEST_PROP(TokenHistoryProperty, RollbackEqualsNeverHavingAppended,
              (const std::vector<uint8_t>& steps)) {
  std::vector<int32_t> prompt = {1, 2, 200};
  std::vector<int32_t> output;
  TokenHistory history(prompt);
  for (const uint8_t step : steps) {
    if (step >= 192) {
      const size_t count = std::min<size_t>(output.size(), step % 8);
      history.Rollback(static_cast<int64_t>(count));
      output.resize(output.size() - count);
    } else {
      // Few tokens, so that they repeat; a large one now and then.
      output.push_back(step % 16 == 0 ? step * 1000 : step % 24);
      history.Append(output.back());
    }
    TokenHistory fresh(prompt);
    for (const int32_t token : output) fresh.Append(token);
    RC_ASSERT(history.output_length() == static_cast<int64_t>(output.size()));
    RC_ASSERT(std::equal(history.entries().begin(), history.entries().end(),
                         fresh.entries().begin(), fresh.entries().end()));
    for (const TokenHistory::Entry& entry : history.entries()) {
      RC_ASSERT(entry.output_count == std::count(output.begin(), output.end(), entry.token));
    }
  }
}

}  // namespace
}  // namespace deepinfer
