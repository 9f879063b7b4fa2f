// A map from byte strings to numbers that keeps all its bytes in one block: building it takes one
// allocation now and then instead of one an entry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deepinfer {

// Keys are numbered 0, 1, ... in the order of their first insertion. At most 2^31 - 1 keys and
// 2^32 - 1 bytes. Find may run in several threads while nobody inserts.
class BytesIndex {
 public:
  explicit BytesIndex(size_t expected_keys = 0);

  // The number of the key, and whether it is new.
  struct Insertion {
    int32_t index;
    bool is_new;
  };
  Insertion Insert(std::string_view key);
  std::optional<int32_t> Find(std::string_view key) const;

  int32_t size() const { return static_cast<int32_t>(ends_.size()) - 1; }
  // Valid until the next Insert.
  std::string_view Key(int32_t index) const {
    const uint32_t begin = ends_[static_cast<size_t>(index)];
    return std::string_view(bytes_).substr(begin, ends_[static_cast<size_t>(index) + 1] - begin);
  }

 private:
  struct Slot {
    uint32_t hash;
    int32_t index;  // -1: free
  };
  size_t FindSlot(std::string_view key, uint32_t hash) const;
  void Grow();

  std::string bytes_;
  std::vector<uint32_t> ends_;  // ends_[i] is where key i begins, ends_[i + 1] where it ends
  std::vector<Slot> slots_;     // a power of two, at most half full; linear probing
};

}  // namespace deepinfer
