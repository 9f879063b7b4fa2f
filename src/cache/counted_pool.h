// Pools of ids whose handles are counted: what the id stands for (a block, a slot, a snapshot) lies
// elsewhere. Only the pool knows how many handles an id has.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

namespace deepinfer::cache {

template <typename Kind>
class CountedPool;

// One share of an id. Move-only; its destruction gives the share back. The pool must outlive it.
template <typename Kind>
class Handle {
 public:
  Handle() = default;
  Handle(Handle&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    Handle old = std::move(*this);
    pool_ = std::exchange(other.pool_, nullptr);
    id_ = std::exchange(other.id_, -1);
    return *this;
  }
  ~Handle() { Reset(); }

  // An empty handle has id -1.
  explicit operator bool() const { return pool_ != nullptr; }
  int32_t id() const { return id_; }
  // Another share of the same id.
  Handle Share() const { return pool_ == nullptr ? Handle() : pool_->Hold(id_); }
  void Reset() {
    if (pool_ != nullptr) std::exchange(pool_, nullptr)->Drop(std::exchange(id_, -1));
  }

 private:
  friend class CountedPool<Kind>;
  Handle(CountedPool<Kind>* pool, int32_t id) : pool_(pool), id_(id) {}

  CountedPool<Kind>* pool_ = nullptr;
  int32_t id_ = -1;
};

// Asked when the last handle of an id goes, whether its content is still worth keeping. An id it
// retains has no handle and is not free: the retainer may hold it again or free it.
template <typename Kind>
class Retainer {
 public:
  virtual bool Retain(int32_t id) = 0;

 protected:
  ~Retainer() = default;
};

// Ids 0 to size() - 1. Every id is free, held (by one handle or more) or retained. Not thread-safe.
template <typename Kind>
class CountedPool {
 public:
  // size >= 0.
  explicit CountedPool(int64_t size) : counts_(size, 0) {
    free_.reserve(size);
    for (int64_t id = size - 1; id >= 0; --id) free_.push_back(static_cast<int32_t>(id));
  }
  ~CountedPool() { assert(held() == 0); }
  CountedPool(const CountedPool&) = delete;
  CountedPool& operator=(const CountedPool&) = delete;

  // Empty when no id is free.
  Handle<Kind> Allocate() {
    if (free_.empty()) return {};
    const int32_t id = free_.back();
    free_.pop_back();
    counts_[id] = 1;
    return Handle<Kind>(this, id);
  }

  int64_t size() const { return std::ssize(counts_); }
  int64_t free() const { return std::ssize(free_); }
  int64_t retained() const { return retained_; }
  int64_t held() const { return size() - free() - retained_; }
  bool is_held(int32_t id) const { return counts_[id] > 0; }

  // At most one retainer, which must outlive every handle.
  void set_retainer(Retainer<Kind>* retainer) { retainer_ = retainer; }
  // For the retainer: a share of an id that is held or retained.
  Handle<Kind> Hold(int32_t id) {
    if (counts_[id]++ == 0) --retained_;
    return Handle<Kind>(this, id);
  }
  // For the retainer: a retained id becomes free.
  void Free(int32_t id) {
    assert(counts_[id] == 0);
    --retained_;
    free_.push_back(id);
  }

 private:
  friend class Handle<Kind>;

  void Drop(int32_t id) {
    assert(counts_[id] > 0);
    if (--counts_[id] > 0) return;
    if (retainer_ != nullptr && retainer_->Retain(id)) {
      ++retained_;
    } else {
      free_.push_back(id);
    }
  }

  std::vector<int32_t> counts_;
  std::vector<int32_t> free_;  // the last one is taken next
  int64_t retained_ = 0;
  Retainer<Kind>* retainer_ = nullptr;
};

}  // namespace deepinfer::cache
