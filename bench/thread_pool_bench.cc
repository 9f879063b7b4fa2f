// Cost of one fork and join of the thread pool, at several numbers of threads.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace deepinfer {
namespace {

// More threads than cores show what a thread that waits for its core costs.
void ThreadCounts(benchmark::internal::Benchmark* bench) {
  bench->ArgName("threads")->Arg(1)->Arg(2)->Arg(4)->Arg(8)->UseRealTime();
}

void BenchEmptyJob(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    pool.ParallelFor(state.range(0), 1,
                     [](int64_t begin, int64_t, int) { benchmark::DoNotOptimize(begin); });
  }
}
BENCHMARK(BenchEmptyJob)->Apply(ThreadCounts);

// About what a kernel of a small model does between two joins: 32 KiB a thread, from the cache.
void BenchSmallJob(benchmark::State& state) {
  const int64_t threads = state.range(0);
  constexpr int64_t kValues = 8 << 10;
  ThreadPool pool(static_cast<int>(threads));
  const std::vector<int32_t> values(threads * kValues, 1);
  std::vector<int64_t> sums(threads * 64);
  for (auto _ : state) {
    pool.ParallelFor(std::ssize(values), kValues, [&](int64_t begin, int64_t end, int worker) {
      sums[worker * 64] += std::accumulate(values.begin() + begin, values.begin() + end, 0);
    });
  }
  benchmark::DoNotOptimize(sums);
}
BENCHMARK(BenchSmallJob)->Apply(ThreadCounts);

// One thread works between jobs, as when it samples a token; then the others must come back.
void BenchJobAfterPause(benchmark::State& state) {
  ThreadPool pool(2);
  const std::chrono::microseconds pause(state.range(0));
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < pause) {
    }
    const auto fork = std::chrono::steady_clock::now();
    pool.ParallelFor(2, 1, [](int64_t begin, int64_t, int) { benchmark::DoNotOptimize(begin); });
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - fork).count());
  }
}
BENCHMARK(BenchJobAfterPause)->ArgName("pause_us")->Arg(10)->Arg(1000)->UseManualTime();

}  // namespace
}  // namespace deepinfer

BENCHMARK_MAIN();
