// Random workloads on tiny memories: every request ends with the tokens it has when it runs alone,
// nothing is read that is not there or used by two, and in the end all memory is back.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "sched/scheduler.h"
#include "tests/property/sched/fake_executor.h"

namespace deepinfer::sched::testing {
namespace {

using cache::EvictionKind;
using cache::PrefixMode;

struct Workload {
  SchedulerOptions options;
  std::vector<uint32_t> events;
  bool break_write_floor = false;
};

SchedulerOptions TinyOptions(PrefixMode mode, int64_t steps_in_flight) {
  SchedulerOptions options;
  options.block_tokens = *rc::gen::element(2, 4);
  options.block_count = *rc::gen::inRange(10, 60);
  options.max_model_len = *rc::gen::inRange(20, 90);
  options.max_num_seqs = *rc::gen::inRange(1, 7);
  options.max_draft_tokens = *rc::gen::inRange(0, 4);
  options.max_batched_tokens = options.max_num_seqs * (1 + options.max_draft_tokens) +
                               2 * options.block_tokens + *rc::gen::inRange(0, 40);
  options.watermark_blocks = *rc::gen::inRange(0, 4);
  options.steps_in_flight = steps_in_flight;
  options.priority_head_start = Time(*rc::gen::inRange(0, 30));
  options.prefix_mode = mode;
  options.eviction = *rc::gen::element(EvictionKind::kLru, EvictionKind::kS3Fifo);
  options.min_hit_tokens = *rc::gen::inRange(1, 13);
  options.window_tokens = *rc::gen::inRange(1, 9);
  options.keep_tokens = *rc::gen::inRange(0, 8);
  options.snapshot_count = *rc::gen::inRange(1, 6);
  options.snapshot_interval = options.block_tokens * *rc::gen::inRange(1, 5);
  return options;
}

// Runs a workload to its end; what went wrong first, or nothing.
class WorkloadRun {
 public:
  explicit WorkloadRun(const Workload& workload)
      : options_(workload.options),
        device_({model_, options_.block_count, options_.block_tokens, options_.max_num_seqs,
                 options_.snapshot_count, options_.window_tokens, options_.max_draft_tokens,
                 workload.break_write_floor}) {
    auto created = Scheduler::Create(options_);
    if (!created) {
      failure_ = created.error().message;
      return;
    }
    scheduler_ = std::move(*created);
    for (const uint32_t event : workload.events) Handle(event);
    Drain();
  }

  const std::string& failure() const { return failure_; }
  // The tokens of every request that ran to its own end.
  const std::map<RequestId, std::vector<int32_t>>& outputs() const { return outputs_; }
  const SchedulerStats& stats() const { return stats_; }

 private:
  struct Known {
    std::vector<int32_t> expected;
    std::vector<int32_t> received;
    bool finished = false;
  };

  void Fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

  void Handle(uint32_t event) {
    const uint64_t bits = RandomBits(7, event);
    now_ += Time(bits % 3);
    switch (event % 8) {
      case 0:
      case 1:
        Add(bits);
        break;
      case 2:
        if (bits % 3 == 0) Cancel(bits >> 8);
        break;
      case 3:
        if (next_id_ > 0 && known_.contains(bits % next_id_)) {
          (void)scheduler_->SetDraftTokens(bits % next_id_,
                                           (bits >> 20) % (options_.max_draft_tokens + 1));
        }
        break;
      default:
        Step();
    }
  }

  void Add(uint64_t bits) {
    NewRequest request;
    request.id = next_id_++;
    // Prompts of a family share a beginning; a third of them are wholly equal.
    const uint64_t family = bits % 3;
    const int64_t length = 1 + static_cast<int64_t>((bits >> 4) % 40);
    const int64_t shared = (bits >> 12) % 3 == 0 ? length : (bits >> 14) % (length + 1);
    for (int64_t i = 0; i < length; ++i) {
      const uint64_t key = i < shared ? family : 100 + request.id;
      request.prompt.push_back(static_cast<int32_t>(RandomBits(key, i) % 50));
    }
    request.max_new_tokens = 1 + static_cast<int64_t>((bits >> 20) % 30);
    request.priority = static_cast<int32_t>((bits >> 28) % 3) - 1;
    if ((bits >> 30) % 5 == 0) request.deadline = now_ + Time((bits >> 34) % 40);
    if ((bits >> 40) % 4 == 0) request.cache_salt = "salt";
    request.prompt_logprobs = (bits >> 43) % 6 == 0;
    if ((bits >> 46) % 4 == 0 && request.id > 0) {
      request.shares_prompt_with = (bits >> 48) % request.id;
    }
    Known known{model_.RunAlone(request.prompt, request.max_new_tokens), request.prompt, false};
    device_.Expect(request.id, known.expected);
    const RequestId id = request.id;
    if (scheduler_->Add(std::move(request), now_)) known_.emplace(id, std::move(known));
  }

  void Cancel(uint64_t bits) {
    if (next_id_ == 0) return;
    TakeFinished();
    const RequestId id = bits % next_id_;
    const bool active = known_.contains(id) && !known_[id].finished;
    if (scheduler_->Cancel(id).has_value() != active) Fail("Cancel and the requests disagree");
    TakeFinished();
  }

  // One turn of the engine's loop: plan and launch, then take in the step before.
  bool Step() {
    ++now_;
    bool progress = false;
    if (scheduler_->steps_in_flight() < options_.steps_in_flight) {
      const StepPlan* plan = *scheduler_->Next(now_);
      if (!plan->empty()) {
        CheckPlan(*plan);
        device_.Launch(*plan);
        progress = true;
      }
      if (progress && scheduler_->steps_in_flight() < options_.steps_in_flight) return true;
    }
    if (scheduler_->steps_in_flight() > 0) {
      Advance();
      progress = true;
    }
    TakeFinished();
    if (!device_.failure().empty()) Fail(device_.failure());
    return progress;
  }

  void CheckPlan(const StepPlan& plan) {
    int64_t rows = 0;
    std::map<RequestId, int> seen;
    for (const PlanRow& row : plan.rows) {
      rows += row.count;
      if (row.count < 1 || ++seen[row.request] > 1) Fail("a plan has an empty or a second row");
      if (row.start + row.start_slack >= row.max_length - 1) Fail("rows beyond the last token");
    }
    if (rows != plan.token_count || rows > options_.max_batched_tokens) Fail("over the budget");
  }

  void Advance() {
    const StepResult result = device_.Collect();
    for (const RowResult& row : result.rows) {
      Known& known = known_[row.request];
      if (known.finished) continue;
      known.received.insert(known.received.end(), row.tokens.begin(), row.tokens.end());
    }
    const Status status = scheduler_->Advance(result);
    if (!status) Fail(status.error().message);
  }

  void TakeFinished() {
    std::vector<FinishedRequest> finished;
    scheduler_->TakeFinished(finished);
    for (const FinishedRequest& request : finished) {
      Known& known = known_[request.id];
      if (known.finished) Fail("a request ended twice");
      known.finished = true;
      const bool whole =
          request.reason == FinishReason::kStop || request.reason == FinishReason::kLength;
      if (whole && known.received != known.expected) Fail("tokens differ from those alone");
      if (!std::equal(
              known.received.begin(), known.received.end(), known.expected.begin(),
              known.expected.begin() + std::min(known.received.size(), known.expected.size()))) {
        Fail("tokens before the end differ from those alone");
      }
      if (whole) outputs_[request.id] = known.received;
    }
  }

  void Drain() {
    while (scheduler_->unfinished() > 0 || scheduler_->steps_in_flight() > 0) {
      if (!Step() && scheduler_->unfinished() > 0) {
        Fail("requests are left, but nothing runs");
        return;
      }
      if (!failure_.empty()) return;
    }
    TakeFinished();
    stats_ = scheduler_->stats();
    for (const auto& [id, known] : known_) {
      if (!known.finished) Fail("a request never ended");
    }
    if (stats_.held_blocks != 0 || stats_.held_slots != 0 || stats_.held_snapshots != 0 ||
        stats_.free_blocks + stats_.idle_blocks != stats_.blocks) {
      Fail("memory was not given back");
    }
    if (options_.prefix_mode == PrefixMode::kOff && stats_.idle_blocks != 0) {
      Fail("blocks are cached without a prefix cache");
    }
  }

  SchedulerOptions options_;
  FakeModel model_;
  FakeDevice device_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<RequestId, Known> known_;
  std::map<RequestId, std::vector<int32_t>> outputs_;
  RequestId next_id_ = 0;
  Time now_{0};
  std::string failure_;
  SchedulerStats stats_;
};

std::vector<uint32_t> Events() {
  const auto length = *rc::gen::inRange<size_t>(1, 250);
  return *rc::gen::container<std::vector<uint32_t>>(length, rc::gen::inRange<uint32_t>(0, 1 << 20));
}

struct Totals {
  int64_t preemptions = 0;
  int64_t hit_tokens = 0;
  int64_t outputs = 0;
};

// Adds up over rc::check's own number of workloads.
void CheckWorkloads(PrefixMode mode, Totals& totals) {
  EXPECT_TRUE(rc::check([&] {
    Workload workload{TinyOptions(mode, 1), Events()};
    const WorkloadRun synchronous(workload);
    RC_ASSERT(synchronous.failure() == "");
    workload.options.steps_in_flight = 2;
    const WorkloadRun asynchronous(workload);
    RC_ASSERT(asynchronous.failure() == "");
    for (const auto& [id, tokens] : synchronous.outputs()) {
      const auto other = asynchronous.outputs().find(id);
      if (other != asynchronous.outputs().end()) RC_ASSERT(other->second == tokens);
    }
    for (const WorkloadRun* run : {&synchronous, &asynchronous}) {
      totals.preemptions += run->stats().preemptions;
      totals.hit_tokens += run->stats().prefix_hit_tokens;
      totals.outputs += std::ssize(run->outputs());
    }
  }));
}

Totals CheckMode(PrefixMode mode) {
  Totals totals;
  for (int round = 0; round < 10; ++round) CheckWorkloads(mode, totals);
  return totals;
}

TEST(SchedulerProperty, EveryRequestEndsWithItsOwnTokensWithoutAPrefixCache) {
  const Totals totals = CheckMode(PrefixMode::kOff);
  EXPECT_GT(totals.preemptions, 0);
  EXPECT_GT(totals.outputs, 0);
}

TEST(SchedulerProperty, EveryRequestEndsWithItsOwnTokensWithFastHits) {
  const Totals totals = CheckMode(PrefixMode::kFast);
  EXPECT_GT(totals.preemptions, 0);
  EXPECT_GT(totals.hit_tokens, 0);
}

TEST(SchedulerProperty, EveryRequestEndsWithItsOwnTokensWithDeterministicHits) {
  const Totals totals = CheckMode(PrefixMode::kDeterministic);
  EXPECT_GT(totals.preemptions, 0);
  EXPECT_GT(totals.hit_tokens, 0);
}

// The control: a device that ignores the write floor must be caught, or the checks check nothing.
TEST(SchedulerProperty, ADeviceThatOverwritesSharedBlocksIsCaught) {
  int caught = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Workload workload;
    workload.options.block_tokens = 2;
    workload.options.block_count = 60;
    workload.options.max_model_len = 90;
    workload.options.max_num_seqs = 4;
    workload.options.max_batched_tokens = 30;
    workload.options.prefix_mode = PrefixMode::kFast;
    workload.options.min_hit_tokens = 4;
    workload.options.window_tokens = 3;
    workload.break_write_floor = true;
    for (uint64_t i = 0; i < 200; ++i) {
      workload.events.push_back(static_cast<uint32_t>(RandomBits(seed, i) >> 40));
    }
    caught += !WorkloadRun(workload).failure().empty();
  }
  EXPECT_GT(caught, 10);
}

}  // namespace
}  // namespace deepinfer::sched::testing
