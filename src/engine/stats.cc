#include "engine/stats.h"

#include <fmt/format.h>
#include <sys/resource.h>

namespace deepinfer {

double GenerationStats::prompt_tokens_per_second() const {
  return prefill_seconds > 0 ? static_cast<double>(prompt_tokens) / prefill_seconds : 0;
}

double GenerationStats::generation_tokens_per_second() const {
  return decode_seconds > 0 ? static_cast<double>(decoded_tokens) / decode_seconds : 0;
}

uint64_t PeakResidentBytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

std::string FormatStats(const GenerationStats& stats, const std::vector<MemoryLine>& memory) {
  std::string text = fmt::format(
      "load        {:.3f} s\n"
      "prompt      {:8} tokens  {:10.1f} tokens/s  {:.3f} s\n"
      "generation  {:8} tokens  {:10.1f} tokens/s  {:.3f} s\n"
      "time to first token  {:.1f} ms\n"
      "memory\n",
      stats.load_seconds, stats.prompt_tokens, stats.prompt_tokens_per_second(),
      stats.prefill_seconds, stats.generated_tokens, stats.generation_tokens_per_second(),
      stats.decode_seconds, stats.time_to_first_token_seconds * 1e3);
  for (const MemoryLine& line : memory) {
    text += fmt::format("  {:<36} {:>14} B  {:9.2f} MiB\n", line.name, line.bytes,
                        static_cast<double>(line.bytes) / (1 << 20));
  }
  return text;
}

std::string FormatSteps(const EngineStats& stats) {
  const StepTimes& times = stats.times;
  const double device = times.forward + times.draft + times.sample + times.mask + times.idle;
  std::string text = fmt::format(
      "steps       {:8}  model {:.3f} s, drawing {:.3f} s, masks {:.3f} s, idle {:.3f} s ({:.1f} "
      "%)\n"
      "beside them           planning {:.3f} s, applying results {:.3f} s\n"
      "prefix cache          {} of {} prompt tokens; {} preemptions\n",
      stats.steps, times.forward, times.sample, times.mask, times.idle,
      device > 0 ? 100 * times.idle / device : 0, times.plan, times.host, stats.prefix_hit_tokens,
      stats.prefix_query_tokens, stats.preemptions);
  const SpeculationCounts& drafts = stats.speculation;
  if (drafts.rounds == 0) return text;
  text += fmt::format("drafts      {:8}  {} accepted, {:.2f} tokens a round; drafting {:.3f} s\n",
                      drafts.drafted_tokens, drafts.accepted_tokens, drafts.MeanAcceptedLength(),
                      times.draft);
  text += "accepted by position ";
  for (size_t k = 0; k < drafts.reached_at.size(); ++k) {
    const auto reached = static_cast<double>(drafts.reached_at[k]);
    text += fmt::format(" {:.3f}",
                        reached > 0 ? static_cast<double>(drafts.accepted_at[k]) / reached : 0);
  }
  return text + "\n";
}

}  // namespace deepinfer
