// A persistent pool of worker threads for splitting one computation by index ranges.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace deepinfer {

// The calling thread is worker 0, so ThreadPool(1) starts no thread. One ParallelFor runs at a
// time: the pool belongs to one caller, which must not call it from inside a range function.
// Range boundaries depend on (count, grain, size()); callers must not let a result depend on them.
class ThreadPool {
 public:
  // threads >= 1; smaller values are taken as 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls fn(begin, end, worker) on disjoint ranges that cover [0, count); every begin is a
  // multiple of grain (>= 1). Returns when all are done. fn must not throw.
  template <typename Fn>
  void ParallelFor(int64_t count, int64_t grain, Fn&& fn) {
    using Stored = std::remove_reference_t<Fn>;
    Run(count, grain, const_cast<void*>(static_cast<const void*>(&fn)),
        [](void* self, int64_t begin, int64_t end, int worker) {
          (*static_cast<Stored*>(self))(begin, end, worker);
        });
  }

 private:
  using Invoke = void (*)(void*, int64_t, int64_t, int);
  void Run(int64_t count, int64_t grain, void* self, Invoke invoke);
  void WorkerLoop(int worker);
  void RunShare(int worker);

  // The job: written before generation_ is advanced, read after it is seen.
  void* self_ = nullptr;
  Invoke invoke_ = nullptr;
  int64_t count_ = 0;
  int64_t grain_ = 1;

  std::atomic<uint64_t> generation_{0};
  std::atomic<int> pending_{0};
  std::atomic<int> parked_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

}  // namespace deepinfer
