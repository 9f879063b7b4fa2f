#include "cache/hash_index.h"

#include <algorithm>
#include <bit>

namespace deepinfer::cache {

HashIndex::HashIndex(int64_t capacity)
    : mask_(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(capacity, 1)) * 2) - 1),
      entries_(mask_ + 1) {}

// The entry of `key`, or the empty one where it would stand.
uint64_t HashIndex::Locate(const Hash128& key) const {
  uint64_t i = Home(key);
  while (entries_[i].value >= 0 && entries_[i].key != key) i = (i + 1) & mask_;
  return i;
}

int32_t HashIndex::Find(const Hash128& key) const { return entries_[Locate(key)].value; }

void HashIndex::Insert(const Hash128& key, int32_t value) { entries_[Locate(key)] = {key, value}; }

void HashIndex::Erase(const Hash128& key) {
  uint64_t hole = Locate(key);
  if (entries_[hole].value < 0) return;
  // Entries of the same run move up into the hole unless that would put them before their home.
  for (uint64_t i = (hole + 1) & mask_; entries_[i].value >= 0; i = (i + 1) & mask_) {
    if (((i - Home(entries_[i].key)) & mask_) >= ((i - hole) & mask_)) {
      entries_[hole] = entries_[i];
      hole = i;
    }
  }
  entries_[hole].value = -1;
}

}  // namespace deepinfer::cache
