#include "sched/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "sched/prefill_share.h"

namespace deepinfer::sched {
namespace {

using testing::HasSubstr;

SchedulerOptions SmallOptions() {
  SchedulerOptions options;
  options.block_tokens = 4;
  options.block_count = 100;
  options.max_model_len = 400;
  options.max_num_seqs = 8;
  options.max_batched_tokens = 40;
  options.min_hit_tokens = 8;
  options.window_tokens = 4;
  options.snapshot_count = 4;
  options.snapshot_interval = 64;
  return options;
}

NewRequest MakeRequest(RequestId id, int64_t prompt, int64_t max_new) {
  NewRequest request;
  request.id = id;
  request.prompt.assign(prompt, static_cast<int32_t>(id));
  request.max_new_tokens = max_new;
  return request;
}

// Plans a step and answers token 1 to every row that samples. Rows by request.
std::vector<PlanRow> Step(Scheduler& scheduler, Time now = Time(0)) {
  static constexpr int32_t kToken = 1;
  const StepPlan& plan = **scheduler.Next(now);
  std::vector<RowResult> results;
  for (const PlanRow& row : plan.rows) {
    results.push_back({row.request, std::span(&kToken, row.samples ? 1 : 0), std::nullopt});
  }
  std::vector<PlanRow> rows = plan.rows;
  const bool advanced = plan.empty() || scheduler.Advance({plan.step, results}).has_value();
  EXPECT_TRUE(advanced);
  return rows;
}

const PlanRow* RowOf(const std::vector<PlanRow>& rows, RequestId id) {
  for (const PlanRow& row : rows) {
    if (row.request == id) return &row;
  }
  return nullptr;
}

TEST(Scheduler, WhatCanNeverRunIsRefusedWithTheNumbers) {
  SchedulerOptions options = SmallOptions();
  options.block_count = 5;
  auto scheduler = *Scheduler::Create(options);
  EXPECT_THAT(scheduler->Add(MakeRequest(1, 18, 4), Time(0)).error().message,
              HasSubstr("18 prompt tokens and 4 new ones need 6 blocks of 4 tokens, there are 5"));
  EXPECT_THAT(scheduler->Add(MakeRequest(1, 399, 2), Time(0)).error().message,
              HasSubstr("max_new_tokens is 2; with 399 prompt tokens and max_model_len 400"));
  EXPECT_FALSE(scheduler->Add(MakeRequest(1, 0, 2), Time(0)));
  EXPECT_TRUE(scheduler->Add(MakeRequest(1, 18, 3), Time(0)));
  EXPECT_THAT(scheduler->Add(MakeRequest(1, 1, 1), Time(0)).error().message, HasSubstr("in use"));
}

TEST(Scheduler, BadOptionsAreRefusedWithTheirRange) {
  SchedulerOptions options = SmallOptions();
  options.block_tokens = 3;
  EXPECT_THAT(Scheduler::Create(options).error().message, HasSubstr("block_tokens is 3"));
  options = SmallOptions();
  options.max_batched_tokens = 15;
  EXPECT_THAT(Scheduler::Create(options).error().message,
              HasSubstr("max_batched_tokens is 15, allowed are 16"));
}

TEST(Scheduler, AResultThatDoesNotFitItsPlanChangesNothing) {
  auto scheduler = *Scheduler::Create(SmallOptions());
  ASSERT_TRUE(scheduler->Add(MakeRequest(1, 5, 3), Time(0)));
  const StepPlan& plan = **scheduler->Next(Time(0));
  const std::vector<int32_t> tokens{1, 2};
  EXPECT_FALSE(scheduler->Advance({plan.step, {}}));
  const std::vector<RowResult> two{{1, tokens, std::nullopt}};
  EXPECT_FALSE(scheduler->Advance({plan.step, two}));
  EXPECT_FALSE(scheduler->Advance({plan.step + 1, two}));
  const std::vector<RowResult> one{{1, std::span(tokens).first(1), std::nullopt}};
  EXPECT_TRUE(scheduler->Advance({plan.step, one}));
}

TEST(Scheduler, AShortPromptIsComputedAtOnceBesideALongOne) {
  auto scheduler = *Scheduler::Create(SmallOptions());
  ASSERT_TRUE(scheduler->Add(MakeRequest(1, 300, 1), Time(0)));
  Step(*scheduler);
  ASSERT_TRUE(scheduler->Add(MakeRequest(2, 12, 1), Time(1)));
  const std::vector<PlanRow> rows = Step(*scheduler, Time(1));
  ASSERT_NE(RowOf(rows, 2), nullptr);
  EXPECT_TRUE(RowOf(rows, 2)->samples);
}

TEST(Scheduler, AStreamOfShortPromptsDoesNotStopALongOne) {
  auto scheduler = *Scheduler::Create(SmallOptions());
  ASSERT_TRUE(scheduler->Add(MakeRequest(1, 300, 1), Time(0)));
  RequestId next = 2;
  // 40 rows, of which half are kept for new prompts and half of the others go to the oldest; at
  // most 7 requests decode.
  constexpr int64_t kLeastRows = 8;
  for (int64_t step = 0; step <= 300 / kLeastRows; ++step) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(scheduler->Add(MakeRequest(next++, 16, 1), Time(step)));
    }
    const std::vector<PlanRow> rows = Step(*scheduler, Time(step));
    ASSERT_NE(RowOf(rows, 1), nullptr);
    if (RowOf(rows, 1)->samples) return;
    ASSERT_GE(RowOf(rows, 1)->count, kLeastRows);
  }
  ADD_FAILURE() << "the long prompt is not computed";
}

TEST(Scheduler, PriorityIsAHeadStart) {
  SchedulerOptions options = SmallOptions();
  options.max_num_seqs = 1;
  options.priority_head_start = Time(10);
  auto scheduler = *Scheduler::Create(options);
  NewRequest early_urgent = MakeRequest(2, 4, 1);
  NewRequest late_urgent = MakeRequest(3, 4, 1);
  early_urgent.priority = late_urgent.priority = 1;
  ASSERT_TRUE(scheduler->Add(MakeRequest(1, 4, 1), Time(5)));
  ASSERT_TRUE(scheduler->Add(std::move(early_urgent), Time(12)));
  ASSERT_TRUE(scheduler->Add(std::move(late_urgent), Time(16)));
  EXPECT_EQ(Step(*scheduler).front().request, 2u);
  EXPECT_EQ(Step(*scheduler).front().request, 1u);
  EXPECT_EQ(Step(*scheduler).front().request, 3u);
}

TEST(Scheduler, TheLatestIsPreemptedAndFinishesLater) {
  SchedulerOptions options = SmallOptions();
  options.block_count = 5;
  auto scheduler = *Scheduler::Create(options);
  ASSERT_TRUE(scheduler->Add(MakeRequest(1, 7, 12), Time(0)));
  ASSERT_TRUE(scheduler->Add(MakeRequest(2, 7, 12), Time(1)));
  for (int step = 0; step < 100 && scheduler->unfinished() > 0; ++step) Step(*scheduler);
  std::vector<FinishedRequest> finished;
  scheduler->TakeFinished(finished);
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[0].id, 1u);
  EXPECT_EQ(finished[0].preemptions, 0);
  EXPECT_GT(finished[1].preemptions, 0);
  EXPECT_EQ(finished[1].output_tokens, 12);
}

TEST(Scheduler, AFollowerTakesThePromptOfItsSource) {
  SchedulerOptions options = SmallOptions();
  options.prefix_mode = cache::PrefixMode::kFast;
  auto scheduler = *Scheduler::Create(options);
  NewRequest follower = MakeRequest(1, 30, 2);
  follower.id = 2;
  follower.shares_prompt_with = 1;
  ASSERT_TRUE(scheduler->Add(MakeRequest(1, 30, 2), Time(0)));
  ASSERT_TRUE(scheduler->Add(std::move(follower), Time(0)));
  EXPECT_EQ(RowOf(Step(*scheduler), 2), nullptr);
  const std::vector<PlanRow> rows = Step(*scheduler);
  ASSERT_NE(RowOf(rows, 2), nullptr);
  EXPECT_EQ(RowOf(rows, 2)->write_floor, 28);
  EXPECT_EQ(RowOf(rows, 2)->start, 24);
}

TEST(Scheduler, SnapshotsAreSavedAtDueBoundariesAndRestoredByTheNext) {
  SchedulerOptions options = SmallOptions();
  options.prefix_mode = cache::PrefixMode::kDeterministic;
  auto scheduler = *Scheduler::Create(options);
  ASSERT_TRUE(scheduler->Add(MakeRequest(1, 30, 1), Time(0)));
  const std::vector<PlanRow> first = Step(*scheduler);
  EXPECT_EQ(first.front().count, 28);
  EXPECT_GE(first.front().save, 0);
  Step(*scheduler);
  NewRequest again = MakeRequest(1, 30, 1);
  again.id = 2;
  ASSERT_TRUE(scheduler->Add(std::move(again), Time(0)));
  const std::vector<PlanRow> second = Step(*scheduler);
  EXPECT_EQ(second.front().start, 28);
  EXPECT_EQ(second.front().restore, first.front().save);
  EXPECT_EQ(second.front().write_floor, 0);
}

TEST(Scheduler, TheThirdPromptWithTheSameBeginningFindsItWhole) {
  SchedulerOptions options = SmallOptions();
  options.prefix_mode = cache::PrefixMode::kDeterministic;
  auto scheduler = *Scheduler::Create(options);
  std::vector<int64_t> starts;
  for (RequestId id = 1; id <= 3; ++id) {
    NewRequest request = MakeRequest(9, 20, 1);  // alike; what follows is each one's own
    request.prompt.resize(30, static_cast<int32_t>(id));
    request.id = id;
    ASSERT_TRUE(scheduler->Add(std::move(request), Time(0)));
    starts.push_back(Step(*scheduler).front().start);
    while (scheduler->unfinished() > 0) Step(*scheduler);
  }
  EXPECT_THAT(starts, testing::ElementsAre(0, 0, 20));
}

TEST(Scheduler, DeadlinesAndCancellationsEndRequestsInEveryState) {
  auto scheduler = *Scheduler::Create(SmallOptions());
  NewRequest late = MakeRequest(1, 100, 5);
  late.deadline = Time(10);
  ASSERT_TRUE(scheduler->Add(std::move(late), Time(0)));
  ASSERT_TRUE(scheduler->Add(MakeRequest(2, 4, 50), Time(0)));
  Step(*scheduler, Time(9));
  EXPECT_EQ(RowOf(Step(*scheduler, Time(10)), 1), nullptr);
  EXPECT_TRUE(scheduler->Cancel(2));
  EXPECT_FALSE(scheduler->Cancel(2));
  std::vector<FinishedRequest> finished;
  scheduler->TakeFinished(finished);
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[0].reason, FinishReason::kDeadline);
  EXPECT_EQ(finished[1].reason, FinishReason::kCancelled);
  EXPECT_EQ(scheduler->stats().held_blocks, 0);
}

TEST(SharePrefillRows, GivesHalfToTheOldestAndTheRestToTheShortest) {
  std::vector<PrefillDemand> demands{{0, 1000, 1000, 0}, {0, 500, 500, 0}, {0, 12, 12, 0}};
  std::vector<int64_t> order;
  EXPECT_EQ(SharePrefillRows(64, 4, demands, order), 64);
  EXPECT_EQ(demands[0].chunk_end, 32);
  EXPECT_EQ(demands[1].chunk_end, 20);
  EXPECT_EQ(demands[2].chunk_end, 12);
}

}  // namespace
}  // namespace deepinfer::sched
