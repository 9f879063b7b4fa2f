// Numbers that a running engine shows: counters, gauges, histograms, and their text for Prometheus.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace deepinfer::metrics {

// Grows. Thread-safe.
class Counter {
 public:
  void Add(double amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Counts observations by upper bounds. Thread-safe.
class Histogram {
 public:
  // `bounds` ascend; one bucket more takes what is above the last.
  explicit Histogram(std::vector<double> bounds);

  void Observe(double value);

  struct Snapshot {
    std::vector<double> bounds;
    std::vector<uint64_t> counts;  // one more than bounds, each of its own bucket alone
    double sum = 0;
    uint64_t count = 0;
    // The value below which `share` (0 to 1) of the observations lie, interpolated in its bucket;
    // 0 without observations.
    double Quantile(double share) const;
  };
  Snapshot snapshot() const;

 private:
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::vector<uint64_t> counts_;  // guarded by mutex_, as is sum_
  double sum_ = 0;
};

// Bounds from `first` on, each `factor` times the one before, `count` of them.
std::vector<double> ExponentialBounds(double first, double factor, int count);

// All metrics of one engine. They live as long as the registry; making them is not thread-safe,
// using them is.
class Registry {
 public:
  // Names are Prometheus's ("deepinfer:num_requests_running"); `labels` is empty or
  // `reason="stop"`. Metrics of one name stand together.
  Counter& AddCounter(std::string_view name, std::string_view labels, std::string_view help);
  Histogram& AddHistogram(std::string_view name, std::string_view help, std::vector<double> bounds);
  // `read` is called by Text, on its thread.
  void AddGauge(std::string_view name, std::string_view help, std::function<double()> read);

  // Text exposition format 0.0.4.
  std::string Text() const;

 private:
  struct Entry {
    std::string name, labels, help;
    std::unique_ptr<Counter> counter = {};
    std::unique_ptr<Histogram> histogram = {};
    std::function<double()> gauge = {};
  };
  std::vector<Entry> entries_;
};

}  // namespace deepinfer::metrics
