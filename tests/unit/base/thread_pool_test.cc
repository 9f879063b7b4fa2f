#include "base/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <thread>
#include <vector>

#include "base/topology.h"

namespace deepinfer {
namespace {

TEST(ThreadPool, NonPositiveThreadCountsMeanOneThread) {
  EXPECT_EQ(ThreadPool(-3).size(), 1);
  EXPECT_EQ(ThreadPool(0).size(), 1);
  EXPECT_EQ(ThreadPool(1).size(), 1);
  EXPECT_EQ(ThreadPool(5).size(), 5);
}

TEST(ThreadPool, EveryIndexIsVisitedExactlyOnceForAnySizeAndGrain) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 7, 64, 65, 1000}) {
      for (int64_t grain : {1, 3, 64, 5000}) {
        std::vector<int> visits(count, 0);
        pool.ParallelFor(count, grain, [&](int64_t begin, int64_t end, int worker) {
          EXPECT_LT(begin, end);
          EXPECT_EQ(begin % grain, 0);
          EXPECT_GE(worker, 0);
          EXPECT_LT(worker, threads);
          for (int64_t i = begin; i < end; ++i) ++visits[i];
        });
        EXPECT_EQ(visits, std::vector<int>(count, 1)) << threads << " " << count << " " << grain;
      }
    }
  }
}

TEST(ThreadPool, AWorkerRunsOneRangeAtATimeSoScratchBuffersCanBePerWorker) {
  ThreadPool pool(4);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::atomic<int>> running(4);
    pool.ParallelFor(1000, 1, [&](int64_t, int64_t, int worker) {
      EXPECT_EQ(running[worker].fetch_add(1), 0);
      running[worker].fetch_sub(1);
    });
  }
}

TEST(ThreadPool, SharesOfWorkersThatNeverComeAreRunByTheCaller) {
  ThreadPool pool(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // workers are parked now
  for (int round = 0; round < 200; ++round) {
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(3, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) sum += i + 1;
    });
    ASSERT_EQ(sum.load(), 6);
  }
}

#ifndef DEEPINFER_NO_MULTIVERSION  // sanitizers need more address space than the limit leaves
TEST(ThreadPool, ThreadsThatTheSystemRefusesAreAnErrorAndNoCrash) {
  const auto make = [] {
    const rlimit limit{size_t{300} << 20, size_t{300} << 20};  // a stack is 8 MiB
    if (::setrlimit(RLIMIT_AS, &limit) != 0) std::exit(2);
    ThreadPool pool(200);
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(100, 1, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
    const bool named =
        !pool.status() && pool.status().error().message.find("threads 200") != std::string::npos;
    std::_Exit(named && pool.size() < 200 && sum == 100 ? 0 : 1);
  };
  EXPECT_EXIT(make(), testing::ExitedWithCode(0), "");
}
#endif

TEST(ThreadPool, WritesOfWorkersAreVisibleAfterTheCall) {
  ThreadPool pool(3);
  std::vector<int64_t> values(300);
  int64_t total = 0;
  for (int round = 0; round < 500; ++round) {
    pool.ParallelFor(300, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) values[i] += i;
    });
    total = std::accumulate(values.begin(), values.end(), int64_t{0});
    ASSERT_EQ(total, int64_t{300} * 299 / 2 * (round + 1));
  }
}

TEST(ThreadPool, ParkedWorkersWakeUp) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    // Longer than any worker spins before it sleeps.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(99, 1, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
    EXPECT_EQ(sum.load(), 99);
  }
}

TEST(ThreadPool, DestructionWithoutAnyWorkDoesNotHang) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

TEST(ThreadPool, ShareIGoesToWorkerISoThatDataStaysInItsCache) {
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> begun{0};
    std::vector<int> worker_of(kThreads, -1);
    pool.ParallelFor(kThreads, 1, [&](int64_t begin, int64_t, int worker) {
      worker_of[begin] = worker;
      // Nobody is free to take a second share before everybody has begun the first.
      ++begun;
      while (begun < kThreads) std::this_thread::yield();
    });
    ASSERT_THAT(worker_of, testing::ElementsAre(0, 1, 2, 3));
  }
}

// The system's handle of each worker.
std::vector<pthread_t> Handles(ThreadPool& pool) {
  const int threads = pool.size();
  std::vector<pthread_t> handles(threads);
  std::atomic<int> begun{0};
  pool.ParallelFor(threads, 1, [&](int64_t, int64_t, int worker) {
    handles[worker] = ::pthread_self();
    ++begun;
    while (begun < threads) std::this_thread::yield();
  });
  return handles;
}

#ifndef DEEPINFER_NO_MULTIVERSION  // the thread sanitizer holds signals back
std::atomic<bool> handler_entered{false};
std::atomic<bool> handler_may_return{false};

// Keeps the thread that it interrupts from running, as losing its core does.
void HoldThread(int) {
  handler_entered = true;
  const timespec nap{0, 1000000};
  while (!handler_may_return) ::nanosleep(&nap, nullptr);
}

TEST(ThreadPool, AStoppedWorkerDelaysNobody) {
  ThreadPool pool(3);
  const pthread_t stopped = Handles(pool)[1];
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = HoldThread;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  handler_entered = handler_may_return = false;
  ASSERT_EQ(::pthread_kill(stopped, SIGUSR1), 0);
  while (!handler_entered) std::this_thread::yield();
  for (int round = 0; round < 100; ++round) {
    std::vector<int> workers(3, -1);
    pool.ParallelFor(3, 1, [&](int64_t begin, int64_t, int worker) { workers[begin] = worker; });
    EXPECT_THAT(workers, testing::Each(testing::AnyOf(0, 2)));
  }
  handler_may_return = true;
  const std::vector<pthread_t> handles = Handles(pool);  // all three take part again
  EXPECT_NE(::pthread_equal(handles[1], stopped), 0);
  ::sigaction(SIGUSR1, &before, nullptr);
}
#endif

TEST(ThreadPool, ThousandsOfTinyJobsOnMoreThreadsThanCoresAllComeBack) {
  const int threads = 8 * static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  ThreadPool pool(threads);
  std::vector<int64_t> visits(threads, 0);
  for (int64_t job = 0; job < 3000; ++job) {
    const int64_t count = 1 + job % threads;
    pool.ParallelFor(count, 1, [&](int64_t begin, int64_t, int) { ++visits[begin]; });
  }
  for (int64_t i = 0; i < threads; ++i) {
    int64_t expected = 0;
    for (int64_t job = 0; job < 3000; ++job) expected += i < 1 + job % threads ? 1 : 0;
    ASSERT_EQ(visits[i], expected) << i;
  }
}

TEST(ThreadPool, TwoBusyPoolsDoNotStopEachOther) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int caller = 0; caller < 2; ++caller) {
    callers.emplace_back([&] {
      ThreadPool pool(3);
      for (int job = 0; job < 2000; ++job) {
        pool.ParallelFor(3, 1, [&](int64_t begin, int64_t end, int) { total += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 2 * 2000 * 3);
}

TEST(ThreadPool, EveryNonEmptyRangeIsRunOnceWhateverTheNumberOfRanges) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int ranges : {0, 1, 2, 5, 7, 40}) {
      std::vector<int64_t> bounds = {10};
      for (int i = 0; i < ranges; ++i) bounds.push_back(bounds.back() + i % 4);  // some are empty
      std::vector<int> visits(bounds.back(), 0);
      std::vector<std::atomic<int>> calls(ranges);
      pool.ParallelRanges(bounds, [&](int64_t begin, int64_t end, int worker) {
        EXPECT_LT(begin, end);
        EXPECT_LT(worker, threads);
        for (int i = 0; i < ranges; ++i) {
          if (bounds[i] == begin && bounds[i + 1] == end) ++calls[i];
        }
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      for (int i = 0; i < ranges; ++i) EXPECT_EQ(calls[i].load(), i % 4 != 0 ? 1 : 0);
      for (int64_t i = 10; i < bounds.back(); ++i) EXPECT_EQ(visits[i], 1);
    }
    pool.ParallelRanges({}, [](int64_t, int64_t, int) { FAIL() << "no bounds, no range"; });
  }
}

TEST(ThreadPool, WorkersRunOnTheCpusAskedForAndTheCallerOnlyIfAsked) {
  const std::vector<int> allowed = AllowedCpus();
  ASSERT_FALSE(allowed.empty());
  const std::vector<int> first = {allowed.front()};
  const std::vector<int> last = {allowed.back()};
  for (const bool pin_caller : {false, true}) {
    {
      ThreadPool pool(2, {.worker_cpus = {first, last}, .pin_caller = pin_caller});
      EXPECT_EQ(pool.pinned(), pin_caller ? 2 : 1);
      std::vector<std::vector<int>> cpus(2);
      std::atomic<int> begun{0};
      pool.ParallelFor(2, 1, [&](int64_t, int64_t, int worker) {
        cpus[worker] = AllowedCpus();
        ++begun;
        while (begun < 2) std::this_thread::yield();
      });
      EXPECT_EQ(cpus[0], pin_caller ? first : allowed);
      EXPECT_EQ(cpus[1], last);
    }
    EXPECT_EQ(AllowedCpus(), allowed) << "the caller gets its CPUs back";
  }
}

TEST(ThreadPool, CpusThatDoNotExistLeaveAWorkerWhereItIs) {
  ThreadPool pool(2, {.worker_cpus = {{}, {65000}}, .pin_caller = true});
  EXPECT_EQ(pool.pinned(), 0);
  EXPECT_TRUE(pool.status());
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(100, 1, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
  EXPECT_EQ(sum.load(), 100);
}

int64_t CpuNanoseconds(pthread_t thread) {
  clockid_t clock{};
  timespec time{};
  EXPECT_EQ(::pthread_getcpuclockid(thread, &clock), 0);
  EXPECT_EQ(::clock_gettime(clock, &time), 0);
  return time.tv_sec * int64_t{1000000000} + time.tv_nsec;
}

TEST(ThreadPool, AnIdleWorkerStopsUsingItsCore) {
  ThreadPool pool(2);
  const pthread_t worker = Handles(pool)[1];
  bool stopped = false;
  for (int tries = 0; tries < 1000 && !stopped; ++tries) {
    const int64_t before = CpuNanoseconds(worker);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stopped = CpuNanoseconds(worker) == before;
  }
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace deepinfer
