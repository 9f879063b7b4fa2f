// A queue of distinct ids below a fixed bound, from which any can be removed. Allocates only when
// created.
#pragma once

#include <cstdint>
#include <vector>

namespace deepinfer::cache {

class IdList {
 public:
  // Ids 0 to bound - 1; entry `bound` of the links closes the ring.
  explicit IdList(int64_t bound) : end_(static_cast<int32_t>(bound)), links_(bound + 1) {
    links_[end_] = {end_, end_};
  }

  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The list is not empty.
  int32_t front() const { return links_[end_].next; }
  // `id` is not in the list.
  void PushBack(int32_t id) {
    const int32_t last = links_[end_].previous;
    links_[id] = {last, end_};
    links_[last].next = id;
    links_[end_].previous = id;
    ++size_;
  }
  // `id` is in the list.
  void Remove(int32_t id) {
    const auto [previous, next] = links_[id];
    links_[previous].next = next;
    links_[next].previous = previous;
    --size_;
  }

 private:
  struct Links {
    int32_t previous = 0;
    int32_t next = 0;
  };
  int32_t end_;
  int64_t size_ = 0;
  std::vector<Links> links_;
};

}  // namespace deepinfer::cache
