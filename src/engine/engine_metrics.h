// What an engine counts. Names follow vLLM's where it has the same thing, so that dashboards fit.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>

#include "deepinfer/result.h"
#include "deepinfer/stats.h"
#include "metrics/metrics.h"

namespace deepinfer {

// Thread-safe once made.
class EngineMetrics {
 public:
  // `stats` is read for the gauges, on the thread that asks for the text.
  explicit EngineMetrics(std::function<EngineStats()> stats);

  void Finished(FinishReason reason) { finished_[static_cast<size_t>(reason)]->Add(1); }
  std::string Text() const { return registry_.Text(); }

  metrics::Counter* prompt_tokens = nullptr;
  metrics::Counter* generation_tokens = nullptr;
  metrics::Counter* preemptions = nullptr;
  metrics::Histogram* time_to_first_token = nullptr;  // seconds
  metrics::Histogram* inter_token_latency = nullptr;
  metrics::Histogram* end_to_end = nullptr;
  metrics::Histogram* queue_time = nullptr;
  metrics::Histogram* step_tokens = nullptr;

 private:
  metrics::Registry registry_;
  std::array<metrics::Counter*, 6> finished_{};
};

}  // namespace deepinfer
