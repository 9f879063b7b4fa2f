// The blocks of one sequence, in the order of its positions.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cache/pools.h"

namespace deepinfer::cache {

// Gives its blocks back from the last to the first: eviction relies on it (eviction_policy.h).
// Move-only.
class BlockTable {
 public:
  BlockTable() = default;
  BlockTable(BlockTable&&) noexcept = default;
  BlockTable& operator=(BlockTable&& other) noexcept {
    Clear();
    blocks_ = std::move(other.blocks_);
    return *this;
  }
  ~BlockTable() { Clear(); }

  int64_t size() const { return std::ssize(blocks_); }
  BlockId id(int64_t i) const { return blocks_[i].id(); }
  const BlockRef& operator[](int64_t i) const { return blocks_[i]; }
  void Reserve(int64_t blocks) { blocks_.reserve(blocks); }
  void Append(BlockRef block) { blocks_.push_back(std::move(block)); }
  // Puts `block` in place of entry i, which it returns.
  BlockRef Replace(int64_t i, BlockRef block) {
    return std::exchange(blocks_[i], std::move(block));
  }
  void Clear() {
    while (!blocks_.empty()) blocks_.pop_back();
  }

 private:
  std::vector<BlockRef> blocks_;
};

}  // namespace deepinfer::cache
