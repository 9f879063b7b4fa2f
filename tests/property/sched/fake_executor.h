// A model and a device for the scheduler's tests: every position's "KV" is the identity of the
// tokens up to it, so each read can be checked, and the next token is a function of all that was
// read.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sched/plan.h"

namespace deepinfer::sched::testing {

struct FakeModel {
  int64_t vocabulary = 50;
  uint64_t seed = 0;
  // The identity of a sequence that continues `prefix` by `token`.
  uint64_t Extend(uint64_t prefix, int32_t token) const;
  // What follows the sequence with this identity.
  int32_t NextToken(uint64_t identity) const;
  bool Stops(int32_t token) const { return token == 0; }
  // All tokens of the request when it runs alone: prompt and output.
  std::vector<int32_t> RunAlone(std::vector<int32_t> prompt, int64_t max_new_tokens) const;
};

struct FakeDeviceOptions {
  FakeModel model;
  int64_t block_count = 0;
  int64_t block_tokens = 0;
  int64_t slot_count = 0;
  int64_t snapshot_count = 0;
  int64_t window = 0;
  int64_t max_drafts = 0;
  // Breaks the device on purpose: rows below the write floor overwrite shared KV with garbage.
  bool ignore_write_floor = false;
};

// Runs plans in the order of Launch() and checks that each reads what it should, and that it
// touches nothing that a launched step of another request may still use.
class FakeDevice {
 public:
  explicit FakeDevice(const FakeDeviceOptions& options);

  // What the request's tokens will be: FakeModel::RunAlone. Before its first row.
  void Expect(RequestId request, const std::vector<int32_t>& tokens);
  void Launch(const StepPlan& plan);
  // The results of the oldest launched step, for Scheduler::Advance. Valid until the next call.
  StepResult Collect();
  // What went wrong first; empty: nothing.
  const std::string& failure() const { return failure_; }
  int64_t rows_computed() const { return rows_computed_; }

 private:
  struct RingEntry {
    int64_t position = -1;
    uint64_t identity = 0;
  };
  using Ring = std::vector<RingEntry>;
  struct Slot {
    RequestId owner = 0;
    int64_t length = 0;  // positions computed
    std::vector<int32_t> tokens;
    std::vector<cache::BlockId> table;
    Ring ring;
  };
  struct Launched {
    int64_t step = 0;
    std::vector<std::vector<int32_t>> tokens;  // one a row
    std::vector<RowResult> results;
    std::map<cache::BlockId, std::set<RequestId>> blocks;
    std::map<cache::SlotId, RequestId> slots;
    std::set<cache::SnapshotId> snapshots;
  };

  void Fail(const PlanRow& row, const std::string& what);
  void CheckConflicts(const StepPlan& plan, const PlanRow& row);
  void RunRow(const StepPlan& plan, const PlanRow& row, Launched& launched);
  void PrepareSlot(const StepPlan& plan, const PlanRow& row, Slot& slot);
  // Computes one position whose token is known; returns the identity up to it.
  uint64_t Compute(const PlanRow& row, Slot& slot, int64_t position, int32_t token);
  uint64_t& Kv(const Slot& slot, int64_t position);
  std::vector<int32_t> Decode(const PlanRow& row, Slot& slot);

  FakeDeviceOptions options_;
  std::vector<uint64_t> kv_;
  std::vector<Slot> slots_;
  std::vector<Ring> snapshots_;
  std::deque<Launched> launched_;
  Launched collected_;
  std::map<RequestId, std::vector<uint64_t>> expected_;  // identities of all prefixes
  std::string failure_;
  int64_t rows_computed_ = 0;
};

}  // namespace deepinfer::sched::testing
