// Repeated timing of one piece of work.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench/record.h"

namespace deepinfer::bench {

struct TimingSettings {
  int repeat = 5;             // repetitions, >= 1
  double min_seconds = 0.05;  // a repetition of short work calls it until this has passed
};

// Seconds of one call over the repetitions.
struct Timing {
  double median = 0, min = 0, max = 0;
  int64_t repetitions = 0;
};

// Of at least one value.
Timing Summarise(std::span<const double> seconds);

// A rate record from a timing: value, min and max are amount / seconds / scale, so that the least
// time gives the greatest rate. Sets `ceiling` (in the record's unit) and `share` when given.
void SetRate(const Timing& timing, double amount, double scale, std::optional<double> ceiling,
             Record& record);

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Calls work() once to warm up, finds how many calls fill min_seconds, and times that many calls
// `repeat` times.
template <typename Work>
Timing Repeat(const TimingSettings& settings, Work&& work) {
  using Clock = std::chrono::steady_clock;
  work();
  int64_t calls = 1;
  for (;;) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) work();
    const double seconds = SecondsSince(start);
    if (seconds >= settings.min_seconds) break;
    const double wanted = 1.1 * settings.min_seconds / std::max(seconds, 1e-7);
    calls = static_cast<int64_t>(static_cast<double>(calls) * std::clamp(wanted, 1.5, 100.0)) + 1;
  }
  std::vector<double> seconds(static_cast<size_t>(settings.repeat));
  for (double& s : seconds) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) work();
    s = SecondsSince(start) / static_cast<double>(calls);
  }
  return Summarise(seconds);
}

}  // namespace deepinfer::bench
