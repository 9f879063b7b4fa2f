#include "base/thread_pool.h"

#include <algorithm>

namespace deepinfer {
namespace {

// Ranges come every few microseconds while a forward runs and never between requests: spin for
// about one range's length, then sleep.
constexpr int kSpinsBeforePark = 20000;
// A yield costs about as much as ten spins when no other thread wants the core.
constexpr int kSpinsBeforeYield = 256;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { WorkerLoop(i); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_.store(true);
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int64_t count, int64_t grain, void* self, Invoke invoke) {
  if (count <= 0) return;
  if (workers_.empty() || count <= grain) {
    invoke(self, 0, count, 0);
    return;
  }
  self_ = self;
  invoke_ = invoke;
  count_ = count;
  grain_ = std::max<int64_t>(grain, 1);
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1);
  if (parked_.load() > 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    wake_.notify_all();
  }
  RunShare(0);
  for (int spins = 0; pending_.load(std::memory_order_acquire) != 0; ++spins) {
    // A worker that is still not done may wait for this very core.
    if (spins < kSpinsBeforeYield) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::RunShare(int worker) {
  const int64_t units = (count_ + grain_ - 1) / grain_;
  const int64_t begin = units * worker / size() * grain_;
  const int64_t end = std::min(count_, units * (worker + 1) / size() * grain_);
  if (begin < end) invoke_(self_, begin, end, worker);
}

void ThreadPool::WorkerLoop(int worker) {
  uint64_t seen = 0;
  while (true) {
    int spins = 0;
    while (generation_.load() == seen) {
      if (++spins < kSpinsBeforePark) {
        Pause();
        continue;
      }
      std::unique_lock<std::mutex> lock(mutex_);
      parked_.fetch_add(1);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      parked_.fetch_sub(1);
    }
    seen = generation_.load();
    if (stopping_.load()) return;
    RunShare(worker);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace deepinfer
