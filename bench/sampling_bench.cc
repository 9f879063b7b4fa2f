// Time to draw one token from a row of the release's vocabulary, one thread.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "sampling/sampler.h"

namespace deepinfer {
namespace {

constexpr int64_t kVocabulary = 129280;

// Normal logits. A deviation of 1 is nearly uniform over the vocabulary, the worst case of top-p;
// 3 with a few raised tokens is the shape of a model's rows.
std::vector<float> Logits(double deviation) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  std::vector<float> logits(static_cast<size_t>(kVocabulary));
  for (float& z : logits) z = normal(random);
  if (deviation > 1) {
    for (int i = 0; i < 20; ++i) logits[random() % logits.size()] = 18.0f - 0.4f * i;
  }
  return logits;
}

void Run(benchmark::State& state, const SamplingParams& params, bool flat,
         const SampleRow& extra = {}, TokenLogprobs* logprobs = nullptr) {
  const std::vector<float> logits = Logits(flat ? 1 : 3);
  SampleRow row = extra;
  row.logits = logits;
  Sampler sampler;
  for (auto _ : state) {
    ++row.position;
    benchmark::DoNotOptimize(sampler.Sample(row, params, logprobs).value_or(-1));
  }
}

void BM_Greedy(benchmark::State& state) { Run(state, {}, false); }
BENCHMARK(BM_Greedy)->Unit(benchmark::kMicrosecond);

void BM_Filters(benchmark::State& state, SamplingParams params) {
  params.temperature = 1;
  Run(state, params, state.range(0) != 0);
}
BENCHMARK_CAPTURE(BM_Filters, none, SamplingParams{})
    ->ArgName("flat")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Filters, top_p, SamplingParams{.top_p = 0.95})
    ->ArgName("flat")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Filters, top_k, SamplingParams{.top_k = 50})
    ->ArgName("flat")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Filters, min_p, SamplingParams{.min_p = 0.05})
    ->ArgName("flat")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Filters, all, SamplingParams{.top_p = 0.95, .top_k = 50, .min_p = 0.01})
    ->ArgName("flat")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond);

// 2,000 tokens of history, a mask that allows every third token.
void BM_MaskAndPenalties(benchmark::State& state) {
  std::mt19937 random(2);
  TokenHistory history;
  for (int i = 0; i < 2000; ++i) history.Append(static_cast<int32_t>(random() % kVocabulary));
  const std::vector<uint32_t> mask((kVocabulary + 31) / 32, 0x49249249u);
  Run(state, {.temperature = 1, .top_p = 0.95, .repetition_penalty = 1.1}, false,
      {.history = &history, .grammar_mask = mask});
}
BENCHMARK(BM_MaskAndPenalties)->Unit(benchmark::kMicrosecond);

void BM_Logprobs(benchmark::State& state) {
  TokenLogprobs logprobs;
  Run(state, {.temperature = 1, .logprobs = 20}, false, {}, &logprobs);
}
BENCHMARK(BM_Logprobs)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace deepinfer

BENCHMARK_MAIN();
