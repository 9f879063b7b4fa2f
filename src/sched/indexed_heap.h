// A binary heap of pointers from which any element can be removed: each knows its place.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace deepinfer::sched {

// kPlace is a member of T that belongs to this heap; -1 while the element is not in it.
// Before{}(a, b): a goes before b, a strict total order that does not change meanwhile.
template <typename T, typename Before, int64_t T::* kPlace>
class IndexedHeap {
 public:
  bool empty() const { return items_.empty(); }
  int64_t size() const { return std::ssize(items_); }
  // The heap is not empty.
  T& top() const { return *items_.front(); }
  static bool Holds(const T& item) { return item.*kPlace >= 0; }

  void Push(T& item) {
    items_.push_back(&item);
    item.*kPlace = std::ssize(items_) - 1;
    Rise(item.*kPlace);
  }
  // The item is in the heap.
  void Remove(T& item) {
    const int64_t place = std::exchange(item.*kPlace, -1);
    T* last = items_.back();
    items_.pop_back();
    if (last == &item) return;
    Put(place, last);
    Rise(place);
    Sink(last->*kPlace);
  }

 private:
  void Put(int64_t place, T* item) {
    items_[place] = item;
    item->*kPlace = place;
  }
  void Swap(int64_t a, int64_t b) {
    T* item = items_[a];
    Put(a, items_[b]);
    Put(b, item);
  }
  void Rise(int64_t place) {
    while (place > 0 && Before{}(*items_[place], *items_[(place - 1) / 2])) {
      Swap(place, (place - 1) / 2);
      place = (place - 1) / 2;
    }
  }
  void Sink(int64_t place) {
    while (2 * place + 1 < size()) {
      int64_t child = 2 * place + 1;
      if (child + 1 < size() && Before{}(*items_[child + 1], *items_[child])) ++child;
      if (!Before{}(*items_[child], *items_[place])) return;
      Swap(place, child);
      place = child;
    }
  }

  std::vector<T*> items_;
};

}  // namespace deepinfer::sched
