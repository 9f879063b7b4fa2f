#include "tokenizer/bytes_index.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

namespace deepinfer {
namespace {

uint32_t HashOf(std::string_view key) {
  return static_cast<uint32_t>(XXH3_64bits(key.data(), key.size()));
}

}  // namespace

BytesIndex::BytesIndex(size_t expected_keys)
    : ends_{0}, slots_(std::bit_ceil(std::max<size_t>(16, expected_keys * 2)), Slot{0, -1}) {
  ends_.reserve(expected_keys + 1);
}

size_t BytesIndex::FindSlot(std::string_view key, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i].index >= 0 && (slots_[i].hash != hash || Key(slots_[i].index) != key)) {
    i = (i + 1) & mask;
  }
  return i;
}

BytesIndex::Insertion BytesIndex::Insert(std::string_view key) {
  const uint32_t hash = HashOf(key);
  size_t slot = FindSlot(key, hash);
  if (slots_[slot].index >= 0) return {slots_[slot].index, false};
  const int32_t index = size();
  if ((static_cast<size_t>(index) + 1) * 2 > slots_.size()) {
    Grow();
    slot = FindSlot(key, hash);
  }
  bytes_.append(key);
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  slots_[slot] = {hash, index};
  return {index, true};
}

std::optional<int32_t> BytesIndex::Find(std::string_view key) const {
  const int32_t index = slots_[FindSlot(key, HashOf(key))].index;
  return index < 0 ? std::nullopt : std::optional<int32_t>(index);
}

void BytesIndex::Grow() {
  std::vector<Slot> old(slots_.size() * 2, Slot{0, -1});
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.index < 0) continue;
    size_t i = slot.hash & mask;
    while (slots_[i].index >= 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

}  // namespace deepinfer
