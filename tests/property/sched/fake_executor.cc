#include "tests/property/sched/fake_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace deepinfer::sched::testing {

uint64_t FakeModel::Extend(uint64_t prefix, int32_t token) const {
  return RandomBits(prefix ^ seed, static_cast<uint64_t>(token));
}

int32_t FakeModel::NextToken(uint64_t identity) const {
  return static_cast<int32_t>(MixBits(identity + 1) % vocabulary);
}

std::vector<int32_t> FakeModel::RunAlone(std::vector<int32_t> prompt,
                                         int64_t max_new_tokens) const {
  uint64_t identity = 0;
  for (const int32_t token : prompt) identity = Extend(identity, token);
  for (int64_t i = 0; i < max_new_tokens; ++i) {
    prompt.push_back(NextToken(identity));
    if (Stops(prompt.back())) break;
    identity = Extend(identity, prompt.back());
  }
  return prompt;
}

FakeDevice::FakeDevice(const FakeDeviceOptions& options)
    : options_(options),
      kv_(options.block_count * options.block_tokens),
      slots_(options.slot_count),
      snapshots_(options.snapshot_count) {}

void FakeDevice::Fail(const PlanRow& row, const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = fmt::format("request {}, slot {}, rows {}+{}: {}", row.request, row.slot, row.start,
                         row.count, what);
}

uint64_t& FakeDevice::Kv(const Slot& slot, int64_t position) {
  const int64_t block = slot.table.at(position / options_.block_tokens);
  return kv_.at(block * options_.block_tokens + position % options_.block_tokens);
}

void FakeDevice::Expect(RequestId request, const std::vector<int32_t>& tokens) {
  std::vector<uint64_t>& identities = expected_[request];
  uint64_t identity = 0;
  for (const int32_t token : tokens) {
    identities.push_back(identity = options_.model.Extend(identity, token));
  }
}

void FakeDevice::Launch(const StepPlan& plan) {
  Launched launched;
  launched.step = plan.step;
  launched.tokens.reserve(plan.rows.size());
  for (const PlanRow& row : plan.rows) CheckConflicts(plan, row);
  for (const PlanRow& row : plan.rows) RunRow(plan, row, launched);
  launched_.push_back(std::move(launched));
}

void FakeDevice::CheckConflicts(const StepPlan& plan, const PlanRow& row) {
  for (const Launched& other : launched_) {
    const auto slot = other.slots.find(row.slot);
    if (slot != other.slots.end() && slot->second != row.request) {
      Fail(row, fmt::format("step {} still uses the slot", other.step));
    }
    // New entries of the table that these rows write.
    const auto ids = plan.NewBlocks(row);
    for (int64_t i = 0; i < std::ssize(ids); ++i) {
      const int64_t end = (row.first_new_block + i + 1) * options_.block_tokens;
      const auto users = other.blocks.find(ids[i]);
      if (end <= std::max(row.start, row.write_floor) || users == other.blocks.end()) continue;
      for (const RequestId user : users->second) {
        if (user != row.request) Fail(row, fmt::format("step {} still uses a block", other.step));
      }
    }
    if (row.save >= 0 && other.snapshots.contains(row.save)) {
      Fail(row, fmt::format("step {} still uses snapshot {}", other.step, row.save));
    }
  }
}

void FakeDevice::PrepareSlot(const StepPlan& plan, const PlanRow& row, Slot& slot) {
  if (row.first) {
    slot = Slot{row.request, row.start, {}, {}, Ring(options_.window + options_.max_drafts + 1)};
    if (row.restore >= 0) slot.ring = snapshots_.at(row.restore);
  }
  if (slot.owner != row.request) Fail(row, "the slot is another request's");
  if (row.first_new_block > std::ssize(slot.table)) Fail(row, "the block table has a gap");
  slot.table.resize(row.first_new_block);
  const auto ids = plan.NewBlocks(row);
  slot.table.insert(slot.table.end(), ids.begin(), ids.end());
}

void FakeDevice::RunRow(const StepPlan& plan, const PlanRow& row, Launched& launched) {
  Slot& slot = slots_.at(row.slot);
  PrepareSlot(plan, row, slot);
  for (const cache::BlockId id : slot.table) launched.blocks[id].insert(row.request);
  launched.slots[row.slot] = row.request;
  if (row.restore >= 0) launched.snapshots.insert(row.restore);
  if (row.save >= 0) launched.snapshots.insert(row.save);
  // Accepted drafts may have ended it in a step whose result is not back yet.
  const bool ended = slot.length >= row.max_length - 1;
  if (slot.length < row.start || (slot.length > row.start + row.start_slack && !ended)) {
    Fail(row, fmt::format("the sequence has {} positions", slot.length));
  }
  if (std::ssize(slot.tokens) < row.start + std::ssize(row.tokens)) {
    slot.tokens.resize(row.start + row.tokens.size());
  }
  std::copy(row.tokens.begin(), row.tokens.end(), slot.tokens.begin() + row.start);

  std::vector<int32_t> result;
  const int64_t needed = slot.length + row.count - row.draft_count;
  if (ended) {
    result.push_back(0);
  } else if (needed > std::ssize(slot.tokens)) {
    Fail(row, "a token is neither known nor sampled");
  } else {
    result = Decode(row, slot);
  }
  if (row.save >= 0) snapshots_.at(row.save) = slot.ring;
  launched.tokens.push_back(row.samples ? std::move(result) : std::vector<int32_t>());
  RowResult& row_result = launched.results.emplace_back();
  row_result = {row.request, launched.tokens.back(), std::nullopt};
  if (row.samples && options_.model.Stops(launched.tokens.back().back())) {
    row_result.finish = FinishReason::kStop;
  }
}

uint64_t FakeDevice::Compute(const PlanRow& row, Slot& slot, int64_t position, int32_t token) {
  ++rows_computed_;
  const std::vector<uint64_t>& expected = expected_.at(row.request);
  for (int64_t p = 0; p < std::min(position, std::ssize(expected)); ++p) {
    if (Kv(slot, p) != expected[p]) Fail(row, fmt::format("KV of position {} is not its own", p));
  }
  const int64_t window_start = std::max(row.replay_start, position - options_.window + 1);
  for (int64_t p = std::max<int64_t>(window_start, 0); p < position; ++p) {
    const RingEntry& entry = slot.ring[p % std::ssize(slot.ring)];
    if (entry.position != p || entry.identity != Kv(slot, p)) {
      Fail(row, fmt::format("the window lacks position {}", p));
    }
  }
  const uint64_t identity =
      options_.model.Extend(position == 0 ? 0 : Kv(slot, position - 1), token);
  if (position >= row.write_floor) {
    Kv(slot, position) = identity;
  } else if (options_.ignore_write_floor) {
    Kv(slot, position) = ~identity;
  } else if (Kv(slot, position) != identity) {
    Fail(row, fmt::format("a hit's KV of position {} is not its own", position));
  }
  slot.ring[position % std::ssize(slot.ring)] = {position, identity};
  return identity;
}

// Computes the rows; returns the tokens that follow the last accepted one. How many drafts are
// right depends on the sequence alone.
std::vector<int32_t> FakeDevice::Decode(const PlanRow& row, Slot& slot) {
  const FakeModel& model = options_.model;
  uint64_t identity = 0;
  for (int64_t i = 0; i < row.count - row.draft_count; ++i, ++slot.length) {
    identity = Compute(row, slot, slot.length, slot.tokens[slot.length]);
  }
  if (!row.samples) return {};
  std::vector<int32_t> accepted{model.NextToken(identity)};
  const int64_t right = static_cast<int64_t>(MixBits(identity) % (row.draft_count + 1));
  for (int64_t draft = 0; draft < row.draft_count; ++draft) {
    if (slot.length + draft >= row.max_length - 1 || model.Stops(accepted.back())) break;
    if (draft >= right) {  // a wrong draft leaves its traces beyond the sequence's end
      Kv(slot, slot.length + draft) = 1;
      slot.ring[(slot.length + draft) % std::ssize(slot.ring)] = {slot.length + draft, 1};
      continue;
    }
    slot.tokens.resize(slot.length + draft);
    slot.tokens.push_back(accepted.back());
    accepted.push_back(model.NextToken(Compute(row, slot, slot.length + draft, accepted.back())));
  }
  slot.length += std::ssize(accepted) - 1;
  slot.tokens.resize(slot.length);
  slot.tokens.push_back(accepted.back());
  return accepted;
}

StepResult FakeDevice::Collect() {
  collected_ = std::move(launched_.front());
  launched_.pop_front();
  return {collected_.step, collected_.results};
}

}  // namespace deepinfer::sched::testing
