// Counts the program's allocations, so that a step's can be asserted.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "sched/scheduler.h"

namespace {
int64_t g_allocations = 0;
}  // namespace

// Not inlined: g++ would take the pairs for mismatched ones.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace deepinfer::sched {
namespace {

TEST(Scheduler, DecodingStepsAllocateNothing) {
  SchedulerOptions options;
  options.block_count = 200;
  options.block_tokens = 4;
  options.max_model_len = 1000;
  options.max_num_seqs = 8;
  options.max_batched_tokens = 100;
  options.prefix_mode = cache::PrefixMode::kFast;
  auto scheduler = *Scheduler::Create(options);
  for (RequestId id = 0; id < 12; ++id) {
    NewRequest request;
    request.id = id;
    request.prompt = {static_cast<int32_t>(id), 2, 3};
    request.max_new_tokens = 90;
    ASSERT_TRUE(scheduler->Add(std::move(request), Time(0)));
  }
  std::vector<RowResult> results;
  results.reserve(8);
  const int32_t token = 1;
  int64_t before = 0;
  for (int step = 0; step < 80; ++step) {
    if (step == 20) before = g_allocations;  // block lists of plans have their size by then
    const StepPlan& plan = **scheduler->Next(Time(0));
    results.clear();
    for (const PlanRow& row : plan.rows) {
      results.push_back({row.request, std::span(&token, row.samples ? 1 : 0), std::nullopt});
    }
    ASSERT_TRUE(scheduler->Advance({plan.step, results}));
  }
  EXPECT_EQ(scheduler->stats().running, 8);
  EXPECT_EQ(g_allocations, before);
}

}  // namespace
}  // namespace deepinfer::sched
