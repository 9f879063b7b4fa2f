#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

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

}  // namespace
}  // namespace deepinfer
