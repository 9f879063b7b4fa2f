// A hash table of fixed capacity from block hashes to small numbers. Allocates only when created.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/hash_chain.h"

namespace deepinfer::cache {

class HashIndex {
 public:
  // Room for `capacity` keys.
  explicit HashIndex(int64_t capacity);

  // The value of `key`, or -1.
  int32_t Find(const Hash128& key) const;
  // `key` is absent, fewer than capacity keys are there, value >= 0.
  void Insert(const Hash128& key, int32_t value);
  // Does nothing when `key` is absent.
  void Erase(const Hash128& key);

 private:
  struct Entry {
    Hash128 key;
    int32_t value = -1;  // -1: empty
  };
  // Linear probing from the hash's low bits; never more than half full.
  uint64_t Home(const Hash128& key) const { return key.low & mask_; }
  uint64_t Locate(const Hash128& key) const;

  uint64_t mask_;
  std::vector<Entry> entries_;
};

}  // namespace deepinfer::cache
