// Drafting in the engine on models/nano: accepted length and tokens per second by depth and by the
// number of requests at once. No arguments are read.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "chat/message.h"
#include "engine/engine.h"
#include "engine/prompt.h"

namespace deepinfer {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::vector<int32_t>> Prompts(const Tokenizer& tokenizer) {
  constexpr const char* kQuestions[] = {
      "Who are you?",
      "What is the second word of \\\"jolly curious\\\"?",
      "Write this in lower case letters: QUICK HAWK LAZY",
      "Sort these numbers: 15, 2, 9, 40",
      "What is 1203 + 331?",
      "Write 47 in words.",
      "Anna has 12 apples and buys 30 more. How many apples does Anna have?",
      "Which is larger, 513 or 531?"};
  std::vector<std::vector<int32_t>> prompts;
  for (const char* question : kQuestions) {
    for (const char* mode : {"chat", "thinking"}) {
      const auto request = ParseChatRequest(
          fmt::format(R"({{"messages": [{{"role": "user", "content": "{}"}}], "mode": "{}"}})",
                      question, mode));
      prompts.push_back(ChatPrompt(*request, tokenizer)->tokens);
    }
  }
  return prompts;
}

struct Speed {
  double tokens_per_second = 0;
  SpeculationCounts counts;
};

// Each prompt once, `together` at a time.
Speed Measure(const std::shared_ptr<const Runtime>& runtime, int64_t depth, int64_t together) {
  EngineSettings settings = EngineSettingsOf(Options{});
  settings.memory.max_num_seqs = together;
  settings.draft_tokens = depth;
  settings.prefix_mode = cache::PrefixMode::kOff;
  auto engine = Engine::Create(runtime, settings);
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    std::exit(1);
  }
  const auto prompts = Prompts(runtime->tokenizer());
  Speed best;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const int64_t before = (*engine)->stats().generated_tokens;
    const auto start = Clock::now();
    std::vector<std::shared_ptr<RequestStream>> streams;
    for (const auto& prompt : prompts) {
      EngineRequest request;
      request.prompt = prompt;
      request.sampling.max_tokens = 64;
      streams.push_back(*(*engine)->Submit(std::move(request)));
    }
    for (const auto& stream : streams) stream->Wait();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const EngineStats stats = (*engine)->stats();
    const auto tokens = static_cast<double>(stats.generated_tokens - before);
    best.tokens_per_second = std::max(best.tokens_per_second, tokens / seconds);
    best.counts = stats.speculation;
  }
  return best;
}

int Main() {
  const auto runtime = Runtime::Load(std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano",
                                     {CheckWeights::kNone});
  if (!runtime) {
    std::fprintf(stderr, "%s\n", runtime.error().message.c_str());
    return 1;
  }
  for (const int64_t together : {1, 4, 16}) {
    for (int64_t depth = 0; depth <= (*runtime)->config().draft_block_size; ++depth) {
      const Speed speed = Measure(*runtime, depth, together);
      fmt::print("{:2} together, depth {}: {:7.0f} tokens/s, {:.2f} tokens a round\n", together,
                 depth, speed.tokens_per_second, speed.counts.MeanAcceptedLength());
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace deepinfer

int main() { return deepinfer::Main(); }
