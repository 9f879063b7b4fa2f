#include "metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace deepinfer::metrics {
namespace {

using ::testing::ElementsAre;

TEST(Metrics, TheTextIsWhatPrometheusReads) {
  Registry registry;
  registry.AddGauge("a:running", "Now.", [] { return 3.0; });
  Counter& stop = registry.AddCounter("a:ended_total", "reason=\"stop\"", "Ended.");
  Counter& other = registry.AddCounter("a:ended_total", "reason=\"length\"", "Ended.");
  Histogram& times = registry.AddHistogram("a:seconds", "Took.", {0.5, 1});
  stop.Add(2);
  other.Add(1);
  times.Observe(0.5);
  times.Observe(0.7);
  times.Observe(4);
  EXPECT_EQ(registry.Text(),
            "# HELP a:running Now.\n# TYPE a:running gauge\na:running 3\n"
            "# HELP a:ended_total Ended.\n# TYPE a:ended_total counter\n"
            "a:ended_total{reason=\"stop\"} 2\na:ended_total{reason=\"length\"} 1\n"
            "# HELP a:seconds Took.\n# TYPE a:seconds histogram\n"
            "a:seconds_bucket{le=\"0.5\"} 1\na:seconds_bucket{le=\"1\"} 2\n"
            "a:seconds_bucket{le=\"+Inf\"} 3\na:seconds_sum 5.2\na:seconds_count 3\n");
}

TEST(Metrics, QuantilesLieInTheirBucket) {
  Histogram histogram(ExponentialBounds(1, 2, 4));
  EXPECT_EQ(histogram.snapshot().Quantile(0.5), 0);
  for (int i = 0; i < 90; ++i) histogram.Observe(1.5);
  for (int i = 0; i < 10; ++i) histogram.Observe(100);
  const Histogram::Snapshot snapshot = histogram.snapshot();
  EXPECT_THAT(snapshot.bounds, ElementsAre(1, 2, 4, 8));
  EXPECT_GT(snapshot.Quantile(0.5), 1);
  EXPECT_LE(snapshot.Quantile(0.5), 2);
  EXPECT_EQ(snapshot.Quantile(0.99), 8);  // all that is known of what is above
}

TEST(Metrics, NoObservationOfAnyThreadIsLost) {
  Counter counter;
  Histogram histogram({1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        counter.Add(1);
        histogram.Observe(i % 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 4000);
  EXPECT_EQ(histogram.snapshot().count, 4000u);
}

}  // namespace
}  // namespace deepinfer::metrics
