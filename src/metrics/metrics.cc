#include "metrics/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace deepinfer::metrics {

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::Observe(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<size_t>(bucket)];
  sum_ += value;
}

Histogram::Snapshot Histogram::snapshot() const {
  const std::lock_guard lock(mutex_);
  Snapshot snapshot{bounds_, counts_, sum_, 0};
  for (const uint64_t count : counts_) snapshot.count += count;
  return snapshot;
}

double Histogram::Snapshot::Quantile(double share) const {
  if (count == 0) return 0;
  double left = share * static_cast<double>(count);
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto in_bucket = static_cast<double>(counts[i]);
    if (left > in_bucket) {
      left -= in_bucket;
      continue;
    }
    if (i == bounds.size()) return bounds.back();
    const double low = i == 0 ? 0 : bounds[i - 1];
    return in_bucket == 0 ? low : low + (bounds[i] - low) * left / in_bucket;
  }
  return bounds.back();
}

std::vector<double> ExponentialBounds(double first, double factor, int count) {
  std::vector<double> bounds;
  for (int i = 0; i < count; ++i, first *= factor) bounds.push_back(first);
  return bounds;
}

Counter& Registry::AddCounter(std::string_view name, std::string_view labels,
                              std::string_view help) {
  Entry& entry =
      entries_.emplace_back(Entry{std::string(name), std::string(labels), std::string(help)});
  entry.counter = std::make_unique<Counter>();
  return *entry.counter;
}

Histogram& Registry::AddHistogram(std::string_view name, std::string_view help,
                                  std::vector<double> bounds) {
  Entry& entry = entries_.emplace_back(Entry{std::string(name), {}, std::string(help)});
  entry.histogram = std::make_unique<Histogram>(std::move(bounds));
  return *entry.histogram;
}

void Registry::AddGauge(std::string_view name, std::string_view help,
                        std::function<double()> read) {
  Entry& entry = entries_.emplace_back(Entry{std::string(name), {}, std::string(help)});
  entry.gauge = std::move(read);
}

std::string Registry::Text() const {
  std::string text;
  std::string_view family;
  for (const Entry& entry : entries_) {
    if (entry.name != family) {
      family = entry.name;
      const char* type = entry.counter ? "counter" : entry.histogram ? "histogram" : "gauge";
      text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family, entry.help, family, type);
    }
    if (entry.histogram) {
      const Histogram::Snapshot snapshot = entry.histogram->snapshot();
      uint64_t below = 0;
      for (size_t i = 0; i < snapshot.bounds.size(); ++i) {
        below += snapshot.counts[i];
        text += fmt::format("{}_bucket{{le=\"{:g}\"}} {}\n", family, snapshot.bounds[i], below);
      }
      text += fmt::format("{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", family,
                          snapshot.count, family, snapshot.sum, family, snapshot.count);
      continue;
    }
    const double value = entry.counter ? entry.counter->value() : entry.gauge();
    text += entry.labels.empty() ? fmt::format("{} {}\n", family, value)
                                 : fmt::format("{}{{{}}} {}\n", family, entry.labels, value);
  }
  return text;
}

}  // namespace deepinfer::metrics
