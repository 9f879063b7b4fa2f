#include "base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "base/topology.h"

namespace deepinfer {
namespace {

// Jobs come every few microseconds while a forward runs and never between requests: a worker spins
// for longer than the gap within a request, then sleeps.
constexpr std::chrono::microseconds kSpinTime{200};
// A clock read costs as much as a few pauses.
constexpr int kPausesPerClockRead = 64;
// A spinning worker begins and ends a tiny share well within these; then the caller looks for
// shares that nobody has begun.
constexpr int kPausesBeforeCallerSteals = 64;
// Workers come later: to look at every share costs their owners a cache miss each.
constexpr int kPausesBeforeWorkerSteals = 512;
// A yield costs about as much as ten pauses when no other thread wants the core.
constexpr int kPausesBeforeYield = 256;

// Two lines, since processors fetch lines in pairs.
constexpr size_t kCacheLine = 128;

// A ticket names a job: job number << 16 | stop << 15 | shares. The job number grows by one a job.
constexpr int kJobShift = 16;
constexpr uint64_t kStop = uint64_t{1} << 15;
constexpr int kMaxThreads = (1 << 15) - 1;

uint64_t JobOf(uint64_t ticket) { return ticket >> kJobShift; }
int SharesOf(uint64_t ticket) { return static_cast<int>(ticket & (kStop - 1)); }

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

class ThreadPool::Crew {
 public:
  struct Job {
    void* self = nullptr;
    Invoke invoke = nullptr;
    int64_t count = 0;                // of indices, or of ranges where bounds is set
    int64_t grain = 1;                // with bounds: 1
    const int64_t* bounds = nullptr;  // count + 1 of them
  };

  // More threads than CPUs: whoever waits gives its core away at once.
  Crew(int threads, bool oversubscribed)
      : shares_(new Share[static_cast<size_t>(threads)]),
        pauses_before_steal_(oversubscribed ? 0 : kPausesBeforeCallerSteals),
        pauses_before_yield_(oversubscribed ? 0 : kPausesBeforeYield) {}
  ~Crew();

  // Throws what std::thread throws.
  std::thread& Start(int worker) {
    return threads_.emplace_back([this, worker] { WorkerLoop(worker); });
  }

  void Run(const Job& job, int shares);

 private:
  // Job numbers: who has begun, and who has ended, this share of the latest job that has it. On
  // lines of their own: the caller polls `ended` while the owner alone touches `begun`.
  struct Share {
    alignas(kCacheLine) std::atomic<uint64_t> begun{0};
    alignas(kCacheLine) std::atomic<uint64_t> ended{0};
  };

  void WorkerLoop(int worker);
  // The next ticket after `seen`; spins, then sleeps.
  uint64_t AwaitTicket(uint64_t seen, int worker);
  uint64_t SleepUntilTicketAfter(uint64_t seen);
  void Wake();
  // Runs a share unless another thread has begun it. Any ticket may be given, however old: shares
  // of a finished job are all begun, and the job is read only behind a begun share, which keeps
  // the caller from replacing it.
  void TryShare(uint64_t ticket, int share, int worker);
  // Afterwards every share of the ticket's job is begun.
  void TryAllShares(uint64_t ticket, int worker);
  void AwaitEnds(uint64_t ticket, int pauses_before_steal);

  // The caller writes both, workers poll the ticket: one line brings all they need.
  alignas(kCacheLine) std::atomic<uint64_t> ticket_{0};
  Job job_;

  alignas(kCacheLine) std::unique_ptr<Share[]> shares_;
  const int pauses_before_steal_;
  const int pauses_before_yield_;
  std::vector<std::thread> threads_;

  alignas(kCacheLine) std::atomic<int> sleeping_{0};
  std::atomic<uint32_t> wakes_{0};  // what sleepers wait on; a lock's holder could lose its core
};

ThreadPool::Crew::~Crew() {
  ticket_.store((JobOf(ticket_.load()) + 1) << kJobShift | kStop);
  Wake();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Crew::Run(const Job& job, int shares) {
  job_ = job;
  const uint64_t ticket = (JobOf(ticket_.load(std::memory_order_relaxed)) + 1) << kJobShift |
                          static_cast<uint64_t>(shares);
  // Sequentially consistent, as is the sleeper's side: either it sees the ticket or we see it.
  ticket_.store(ticket);
  const bool wake = sleeping_.load() > 0;
  if (wake) Wake();
  TryShare(ticket, 0, 0);
  AwaitEnds(ticket, wake ? 0 : pauses_before_steal_);
}

void ThreadPool::Crew::AwaitEnds(uint64_t ticket, int pauses_before_steal) {
  const uint64_t job = JobOf(ticket);
  const int shares = SharesOf(ticket);
  int share = 0;
  const auto all_ended = [&] {
    while (share < shares && shares_[share].ended.load(std::memory_order_acquire) == job) ++share;
    return share == shares;
  };
  for (int pauses = 0; pauses < pauses_before_steal; ++pauses) {
    if (all_ended()) return;
    Pause();
  }
  TryAllShares(ticket, 0);
  for (int pauses = 0; !all_ended(); ++pauses) {
    // A thread that is still not done may wait for this very core.
    if (pauses < pauses_before_yield_) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::Crew::TryShare(uint64_t ticket, int share, int worker) {
  Share& state = shares_[share];
  uint64_t begun = state.begun.load(std::memory_order_relaxed);
  if (begun >= JobOf(ticket)) return;
  if (!state.begun.compare_exchange_strong(begun, JobOf(ticket), std::memory_order_relaxed)) return;
  const int64_t shares = SharesOf(ticket);
  const int64_t units = (job_.count + job_.grain - 1) / job_.grain;
  const int64_t begin = units * share / shares * job_.grain;
  const int64_t end = std::min(job_.count, units * (share + 1) / shares * job_.grain);
  if (job_.bounds == nullptr) {
    if (begin < end) job_.invoke(job_.self, begin, end, worker);
  } else {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = job_.bounds[i];
      const int64_t last = job_.bounds[i + 1];
      if (first < last) job_.invoke(job_.self, first, last, worker);
    }
  }
  state.ended.store(JobOf(ticket), std::memory_order_release);
}

void ThreadPool::Crew::TryAllShares(uint64_t ticket, int worker) {
  const int shares = SharesOf(ticket);
  const int first = std::min(worker, shares);
  for (int share = first; share < shares; ++share) TryShare(ticket, share, worker);
  for (int share = 0; share < first; ++share) TryShare(ticket, share, worker);
}

void ThreadPool::Crew::WorkerLoop(int worker) {
  uint64_t ticket = 0;
  while (((ticket = AwaitTicket(ticket, worker)) & kStop) == 0) {
    if (worker < SharesOf(ticket)) TryShare(ticket, worker, worker);
  }
}

uint64_t ThreadPool::Crew::AwaitTicket(uint64_t seen, int worker) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline = Clock::time_point::max();
  for (int pauses = 0;; ++pauses) {
    const uint64_t ticket = ticket_.load(std::memory_order_acquire);
    if (ticket != seen) return ticket;
    Pause();
    if (pauses == kPausesBeforeWorkerSteals) TryAllShares(seen, worker);
    if (pauses % kPausesPerClockRead != 0) continue;
    const Clock::time_point now = Clock::now();
    if (deadline == Clock::time_point::max()) deadline = now + kSpinTime;
    if (now >= deadline) return SleepUntilTicketAfter(seen);
    if (pauses >= 4 * pauses_before_yield_) std::this_thread::yield();
  }
}

uint64_t ThreadPool::Crew::SleepUntilTicketAfter(uint64_t seen) {
  sleeping_.fetch_add(1);
  uint64_t ticket = seen;
  for (;;) {
    // In this order: a ticket that the second load misses comes with a later wake.
    const uint32_t wakes = wakes_.load();
    ticket = ticket_.load();
    if (ticket != seen) break;
    wakes_.wait(wakes);
  }
  sleeping_.fetch_sub(1);
  return ticket;
}

void ThreadPool::Crew::Wake() {
  wakes_.fetch_add(1);
  wakes_.notify_all();
}

ThreadPool::ThreadPool(int threads, const ThreadPoolOptions& options) {
  threads = std::clamp(threads, 1, kMaxThreads);
  const std::vector<int> allowed = AllowedCpus();
  crew_ = std::make_unique<Crew>(threads, threads > std::ssize(allowed));
  const auto bind = [&](int worker, pthread_t thread) {
    const auto& cpus = options.worker_cpus;
    if (worker < std::ssize(cpus) && BindThread(thread, cpus[worker])) ++pinned_;
  };
  for (int i = 1; i < threads; ++i) {
    try {
      bind(i, crew_->Start(i).native_handle());
      ++size_;
    } catch (const std::exception& e) {
      status_ = MakeError(ErrorCode::kResourceExhausted, "threads {}: only {} could be started: {}",
                          threads, i, e.what());
      break;
    }
  }
  // Last, since threads start on the CPUs of the thread that starts them.
  if (options.pin_caller) {
    bind(0, ::pthread_self());
    caller_ = ::pthread_self();
    caller_cpus_ = allowed;
  }
}

ThreadPool::~ThreadPool() {
  if (!caller_cpus_.empty() && ::pthread_equal(caller_, ::pthread_self()) != 0) {
    BindThread(caller_, caller_cpus_);
  }
}

void ThreadPool::RunFor(int64_t count, int64_t grain, void* self, Invoke invoke) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t shares = std::min<int64_t>((count + grain - 1) / grain, size());
  if (shares == 1) {
    invoke(self, 0, count, 0);
    return;
  }
  crew_->Run({self, invoke, count, grain, nullptr}, static_cast<int>(shares));
}

void ThreadPool::RunRanges(std::span<const int64_t> bounds, void* self, Invoke invoke) {
  const int64_t ranges = std::ssize(bounds) - 1;
  if (ranges <= 0) return;
  crew_->Run({self, invoke, ranges, 1, bounds.data()},
             static_cast<int>(std::min<int64_t>(ranges, size())));
}

}  // namespace deepinfer
