// A persistent pool of worker threads for splitting one computation by index ranges.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace deepinfer {

struct ThreadPoolOptions {
  // Entry i: the CPUs worker i may run on (base/topology.h, WorkerCpus). Workers without an entry
  // run wherever their creator may; so does a worker whose CPUs the system refuses.
  std::vector<std::vector<int>> worker_cpus;
  // Entry 0 applies to the thread that creates the pool, until it destroys the pool. Off: that
  // thread is left as it is, since a caller's threads are its own.
  bool pin_caller = false;
};

// The calling thread is worker 0, so ThreadPool(1) starts no thread. One ParallelFor or
// ParallelRanges runs at a time: the pool belongs to one caller, which must not call it from inside
// a range function. Range boundaries depend on (count, grain, size()), and who runs a range on the
// machine's load; callers must not let a result depend on either.
//
// A job has one share a worker. Share i goes to worker i, so that a repeated job finds its data in
// the same worker's cache and memory node; a share that its worker has not begun is taken by a
// thread that has nothing else to do, so that a thread which lost its core (or sleeps) delays
// nobody. Workers spin for about 200 us after a job, then sleep.
class ThreadPool {
 public:
  // threads >= 1; smaller values are taken as 1. Never throws: where the system refuses a thread
  // the pool has those it got, and status() says so.
  explicit ThreadPool(int threads, const ThreadPoolOptions& options = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }
  // Threads, the caller included, that are bound to the CPUs asked for.
  int pinned() const { return pinned_; }
  // An error naming the number asked for and the system's reason when there are fewer threads.
  const Status& status() const { return status_; }

  // Calls fn(begin, end, worker) on disjoint ranges that cover [0, count); every begin is a
  // multiple of grain (>= 1). Returns when all are done. fn must not throw.
  template <typename Fn>
  void ParallelFor(int64_t count, int64_t grain, Fn&& fn) {
    RunFor(count, grain, Address(fn), Call<std::remove_reference_t<Fn>>);
  }

  // Calls fn(bounds[i], bounds[i + 1], worker) for every i whose range is not empty. Bounds ascend;
  // there may be any number of ranges, neighbours going to the same worker. For work whose cost is
  // uneven: the caller cuts it by bytes instead of by index.
  template <typename Fn>
  void ParallelRanges(std::span<const int64_t> bounds, Fn&& fn) {
    RunRanges(bounds, Address(fn), Call<std::remove_reference_t<Fn>>);
  }

 private:
  using Invoke = void (*)(void*, int64_t, int64_t, int);
  class Crew;  // threads and what they share

  template <typename Fn>
  static void* Address(Fn& fn) {
    return const_cast<void*>(static_cast<const void*>(&fn));
  }
  template <typename Fn>
  static void Call(void* self, int64_t begin, int64_t end, int worker) {
    (*static_cast<Fn*>(self))(begin, end, worker);
  }
  void RunFor(int64_t count, int64_t grain, void* self, Invoke invoke);
  void RunRanges(std::span<const int64_t> bounds, void* self, Invoke invoke);

  int size_ = 1;
  int pinned_ = 0;
  Status status_;
  std::unique_ptr<Crew> crew_;
  // With pin_caller: the thread that was bound and where it might run before.
  pthread_t caller_{};
  std::vector<int> caller_cpus_;
};

}  // namespace deepinfer
