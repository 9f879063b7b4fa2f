#include "base/thread_pool.h"

#include <algorithm>
#include <exception>

namespace deepinfer {
namespace {

// Ranges come every few microseconds while a forward runs and never between requests: spin for
// about one range's length, then sleep.
constexpr int kSpinsBeforePark = 20000;
// A yield costs about as much as ten spins when no other thread wants the core.
constexpr int kSpinsBeforeYield = 256;

constexpr int kShareBits = 16;
constexpr uint64_t kShareMask = (uint64_t{1} << kShareBits) - 1;

bool HasOpenShare(uint64_t ticket) {
  return (ticket & kShareMask) < (ticket >> kShareBits & kShareMask);
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  // Shares are counted in 16 bits.
  threads = std::min(threads, 1 << 15);
  for (int i = 1; i < threads; ++i) {
    try {
      workers_.emplace_back([this, i] { WorkerLoop(i); });
    } catch (const std::exception& e) {
      status_ = MakeError(ErrorCode::kResourceExhausted, "threads {}: only {} could be started: {}",
                          threads, i, e.what());
      return;
    }
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_.store(true);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int64_t count, int64_t grain, void* self, Invoke invoke) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t units = (count + grain - 1) / grain;
  const auto shares = static_cast<uint64_t>(std::min<int64_t>(units, size()));
  if (shares == 1) {
    invoke(self, 0, count, 0);
    return;
  }
  self_ = self;
  invoke_ = invoke;
  count_ = count;
  grain_ = grain;
  finished_.store(0, std::memory_order_relaxed);
  const uint64_t job = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store(job << 32 | shares << kShareBits);
  if (parked_.load() > 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    wake_.notify_all();
  }
  RunShares(0);
  for (int spins = 0; finished_.load(std::memory_order_acquire) != shares; ++spins) {
    // A thread that is still not done may wait for this very core.
    if (spins < kSpinsBeforeYield) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

bool ThreadPool::RunShares(int worker) {
  bool ran = false;
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (HasOpenShare(ticket)) {
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      continue;
    }
    const auto share = static_cast<int64_t>(ticket & kShareMask);
    const auto shares = static_cast<int64_t>(ticket >> kShareBits & kShareMask);
    const int64_t units = (count_ + grain_ - 1) / grain_;
    const int64_t begin = units * share / shares * grain_;
    const int64_t end = std::min(count_, units * (share + 1) / shares * grain_);
    if (begin < end) invoke_(self_, begin, end, worker);
    finished_.fetch_add(1, std::memory_order_release);
    ran = true;
    ticket = ticket_.load(std::memory_order_acquire);
  }
  return ran;
}

void ThreadPool::WorkerLoop(int worker) {
  while (!stopping_.load()) {
    bool ran = false;
    for (int spins = 0; spins < kSpinsBeforePark && !ran; ++spins) {
      ran = RunShares(worker);
      if (!ran) Pause();
    }
    if (ran) continue;
    std::unique_lock<std::mutex> lock(mutex_);
    parked_.fetch_add(1);
    wake_.wait(lock, [&] { return stopping_.load() || HasOpenShare(ticket_.load()); });
    parked_.fetch_sub(1);
  }
}

}  // namespace deepinfer
