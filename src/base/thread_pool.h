// A persistent pool of worker threads for splitting one computation by index ranges.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace deepinfer {

// The calling thread is worker 0, so ThreadPool(1) starts no thread. One ParallelFor runs at a
// time: the pool belongs to one caller, which must not call it from inside a range function.
// Range boundaries depend on (count, grain, size()), and who runs a range on the
// machine's load; callers must not let a result depend on either.
class ThreadPool {
 public:
  // threads >= 1; smaller values are taken as 1. Never throws: where the system refuses a thread
  // the pool has those it got, and status() says so.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }
  // An error naming the number asked for and the system's reason when there are fewer threads.
  const Status& status() const { return status_; }

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
  // Takes shares of the running job until none is left; false when there was none.
  bool RunShares(int worker);

  // A job is cut into shares that any thread may take, so that a thread which has lost its core (or
  // sleeps) before it took one holds nobody up. The ticket says which is next:
  // job number << 32 | shares << 16 | next share.
  std::atomic<uint64_t> ticket_{0};
  std::atomic<uint32_t> finished_{0};  // shares of the running job

  // The job. Written while no share is open, read by threads that hold one.
  void* self_ = nullptr;
  Invoke invoke_ = nullptr;
  int64_t count_ = 0;
  int64_t grain_ = 1;

  std::atomic<int> parked_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
  Status status_;
};

}  // namespace deepinfer
