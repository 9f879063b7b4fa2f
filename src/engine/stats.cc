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

}  // namespace deepinfer
