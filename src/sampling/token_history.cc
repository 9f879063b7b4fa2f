#include "sampling/token_history.h"

#include <algorithm>
#include <bit>

#include "base/random.h"

namespace deepinfer {

TokenHistory::TokenHistory(std::span<const int32_t> prompt) {
  for (const int32_t token : prompt) FindOrAdd(token).in_prompt = true;
}

void TokenHistory::Reserve(int64_t tokens) {
  const size_t count = static_cast<size_t>(tokens);
  output_.reserve(output_.size() + count);
  entries_.reserve(entries_.size() + count);
  const size_t slot_count = std::bit_ceil(2 * (entries_.size() + count));
  if (slot_count > slots_.size()) Rehash(slot_count);
}

size_t TokenHistory::FindSlot(int32_t token) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = MixBits(static_cast<uint64_t>(token)) & mask;
  while (slots_[slot] != 0 && entries_[slots_[slot] - 1].token != token) slot = (slot + 1) & mask;
  return slot;
}

void TokenHistory::Rehash(size_t slot_count) {
  slots_.assign(slot_count, 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    slots_[FindSlot(entries_[i].token)] = static_cast<uint32_t>(i + 1);
  }
}

TokenHistory::Entry& TokenHistory::FindOrAdd(int32_t token) {
  if (2 * (entries_.size() + 1) > slots_.size()) Rehash(std::max<size_t>(16, 2 * slots_.size()));
  const size_t slot = FindSlot(token);
  if (slots_[slot] == 0) {
    entries_.push_back({token, 0, false});
    slots_[slot] = static_cast<uint32_t>(entries_.size());
  }
  return entries_[slots_[slot] - 1];
}

void TokenHistory::Append(int32_t token) {
  ++FindOrAdd(token).output_count;
  output_.push_back(token);
}

void TokenHistory::Rollback(int64_t count) {
  for (; count > 0; --count) {
    const size_t slot = FindSlot(output_.back());
    output_.pop_back();
    Entry& entry = entries_[slots_[slot] - 1];
    --entry.output_count;
    if (entry.output_count > 0 || entry.in_prompt) continue;
    // The token being forgotten created this entry, and whatever was created later is gone already:
    // it is the last one, and no probe sequence of the others passes over its slot.
    entries_.pop_back();
    slots_[slot] = 0;
  }
}

}  // namespace deepinfer
