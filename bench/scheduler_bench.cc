// Time of a scheduler's step (Next and Advance) with an executor that answers at once: 256 running
// requests, 10,000 waiting ones, new ones in place of those that end.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "sched/scheduler.h"

namespace deepinfer::sched {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWaiting = 10000;

class Service {
 public:
  explicit Service(cache::PrefixMode mode) {
    SchedulerOptions options;
    options.block_count = 1 << 14;
    options.max_model_len = 1 << 14;
    options.max_num_seqs = 256;
    options.max_batched_tokens = 8192;
    options.prefix_mode = mode;
    options.snapshot_count = 512;
    options.watermark_blocks = 128;
    scheduler_ = *Scheduler::Create(options);
    while (scheduler_->stats().waiting < kWaiting) Add();
  }

  // Seconds in the scheduler.
  double Step() {
    const auto start = Clock::now();
    const StepPlan& plan = **scheduler_->Next(Clock::now().time_since_epoch());
    const auto planned = Clock::now();
    results_.clear();
    for (const PlanRow& row : plan.rows) {
      results_.push_back({row.request, std::span(&kToken, row.samples ? 1 : 0), std::nullopt});
    }
    const auto executed = Clock::now();
    (void)scheduler_->Advance({plan.step, results_});
    const auto advanced = Clock::now();
    finished_.clear();
    scheduler_->TakeFinished(finished_);
    for (size_t i = 0; i < finished_.size(); ++i) Add();
    return std::chrono::duration<double>(planned - start + (advanced - executed)).count();
  }
  int64_t running() const { return scheduler_->stats().running; }
  int64_t waiting() const { return scheduler_->stats().waiting; }

 private:
  static constexpr int32_t kToken = 7;

  // Prompts of 256 to 1023 tokens, the first 512 of one of 16 kinds; 64 to 319 new tokens.
  void Add() {
    const uint64_t bits = RandomBits(1, next_id_);
    NewRequest request;
    request.id = next_id_++;
    request.prompt.resize(256 + bits % 768);
    for (int64_t i = 0; i < std::ssize(request.prompt); ++i) {
      request.prompt[i] = static_cast<int32_t>(RandomBits(i < 512 ? bits >> 60 : bits, i) % 100000);
    }
    request.max_new_tokens = 64 + static_cast<int64_t>((bits >> 20) % 256);
    request.priority = static_cast<int32_t>((bits >> 40) % 3);
    (void)scheduler_->Add(std::move(request), Clock::now().time_since_epoch());
  }

  std::unique_ptr<Scheduler> scheduler_;
  std::vector<RowResult> results_;
  std::vector<FinishedRequest> finished_;
  RequestId next_id_ = 0;
};

void BenchStep(benchmark::State& state) {
  Service service(static_cast<cache::PrefixMode>(state.range(0)));
  for (int i = 0; i < 200; ++i) service.Step();  // until 256 requests run
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(service.Step());
    state.SetIterationTime(seconds.back());
  }
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) { return seconds[share * (seconds.size() - 1)] * 1e6; };
  state.counters["p50_us"] = at(0.5);
  state.counters["p99_us"] = at(0.99);
  state.counters["running"] = static_cast<double>(service.running());
  state.counters["waiting"] = static_cast<double>(service.waiting());
}
BENCHMARK(BenchStep)->ArgName("prefix_mode")->DenseRange(0, 2)->UseManualTime()->Iterations(5000);

}  // namespace
}  // namespace deepinfer::sched

BENCHMARK_MAIN();
