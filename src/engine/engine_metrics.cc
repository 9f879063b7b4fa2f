#include "engine/engine_metrics.h"

#include <fmt/format.h>

#include <utility>

namespace deepinfer {

EngineMetrics::EngineMetrics(std::function<EngineStats()> stats) {
  const auto counter = [&](const char* name, const char* help) {
    return &registry_.AddCounter(name, {}, help);
  };
  const auto histogram = [&](const char* name, const char* help, double first, double factor,
                             int count) {
    return &registry_.AddHistogram(name, help, metrics::ExponentialBounds(first, factor, count));
  };
  const auto gauge = [&](const char* name, const char* help, auto read) {
    registry_.AddGauge(name, help, [stats, read] { return static_cast<double>(read(stats())); });
  };
  using S = EngineStats;
  gauge("vllm:num_requests_running", "Sequences that hold memory.",
        [](const S& s) { return s.running; });
  gauge("vllm:num_requests_waiting", "Sequences that wait for memory or a grammar.",
        [](const S& s) { return s.waiting; });
  gauge("vllm:kv_cache_usage_perc", "Share of KV blocks that running sequences hold, 0 to 1.",
        [](const S& s) {
          const int64_t held = s.kv_blocks - s.kv_blocks_free - s.kv_blocks_cached;
          return s.kv_blocks > 0 ? static_cast<double>(held) / static_cast<double>(s.kv_blocks) : 0;
        });
  gauge("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.",
        [](const S& s) { return s.prefix_query_tokens; });
  gauge("vllm:prefix_cache_hits", "Of them, found.",
        [](const S& s) { return s.prefix_hit_tokens; });
  gauge("deepinfer:steps", "Steps planned.", [](const S& s) { return s.steps; });
  gauge("deepinfer:step_plan_seconds", "Time spent planning steps.",
        [](const S& s) { return s.times.plan; });
  gauge("deepinfer:step_forward_seconds", "Time spent in the model.",
        [](const S& s) { return s.times.forward; });
  gauge("deepinfer:step_draft_seconds", "Time spent in the draft module.",
        [](const S& s) { return s.times.draft; });
  gauge("vllm:spec_decode_num_drafts", "Sequences' shares of steps that verified drafts.",
        [](const S& s) { return s.speculation.rounds; });
  gauge("vllm:spec_decode_num_draft_tokens", "Drafts verified.",
        [](const S& s) { return s.speculation.drafted_tokens; });
  gauge("vllm:spec_decode_num_accepted_tokens", "Of them, accepted.",
        [](const S& s) { return s.speculation.accepted_tokens; });
  gauge("deepinfer:step_sample_seconds", "Time spent drawing tokens.",
        [](const S& s) { return s.times.sample; });
  gauge("deepinfer:step_mask_seconds", "Time the device waited for grammar masks.",
        [](const S& s) { return s.times.mask; });
  gauge("deepinfer:step_host_seconds", "Time spent applying results.",
        [](const S& s) { return s.times.host; });
  gauge("deepinfer:device_idle_seconds", "Time the device waited while requests were running.",
        [](const S& s) { return s.times.idle; });
  prompt_tokens = counter("vllm:prompt_tokens_total", "Prompt tokens of admitted requests.");
  generation_tokens = counter("vllm:generation_tokens_total", "Tokens drawn.");
  preemptions = counter("vllm:num_preemptions_total", "Preemptions.");
  for (size_t i = 0; i < finished_.size(); ++i) {
    finished_[i] = &registry_.AddCounter(
        "vllm:request_success_total",
        fmt::format("finished_reason=\"{}\"", i == static_cast<size_t>(FinishReason::kContext)
                                                  ? "context"
                                                  : FinishReasonName(static_cast<FinishReason>(i))),
        "Sequences that ended, by reason.");
  }
  time_to_first_token = histogram("vllm:time_to_first_token_seconds",
                                  "From submission to the first token.", 0.001, 2, 20);
  inter_token_latency =
      histogram("vllm:inter_token_latency_seconds", "Between two tokens.", 0.0001, 2, 20);
  end_to_end =
      histogram("vllm:e2e_request_latency_seconds", "From submission to the end.", 0.001, 2, 24);
  queue_time = histogram("vllm:request_queue_time_seconds", "From submission to the first row.",
                         0.0001, 2, 24);
  step_tokens = histogram("vllm:iteration_tokens_total", "Rows of a step.", 1, 2, 15);
}

}  // namespace deepinfer
