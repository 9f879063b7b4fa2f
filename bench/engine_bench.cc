// The engine on models/nano: batching against one request at a time, what the device waits for,
// and the time to the first token of a prompt that the prefix cache knows. No arguments are read.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace deepinfer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kRequests = 64, kPromptTokens = 16, kOutputTokens = 64;
constexpr int64_t kLongPrompt = 7000;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int32_t> Tokens(int64_t count, int64_t seed) {
  std::vector<int32_t> tokens = {0};
  uint32_t x = static_cast<uint32_t>(seed) * 2654435761u + 1;
  while (std::ssize(tokens) < count) {
    x = x * 1664525u + 1013904223u;
    tokens.push_back(static_cast<int32_t>(300 + (x >> 8) % 7000));
  }
  return tokens;
}

std::unique_ptr<Engine> MakeEngine(const std::shared_ptr<const Runtime>& runtime,
                                   const EngineSettings& settings) {
  auto engine = Engine::Create(runtime, settings);
  if (engine) return std::move(*engine);
  std::fprintf(stderr, "%s\n", engine.error().message.c_str());
  std::exit(1);
}

EngineRequest Request(std::vector<int32_t> prompt, int64_t output) {
  EngineRequest request;
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = output;
  request.sampling.ignore_eos = true;
  return request;
}

struct Batch {
  double tokens_per_second;
  double idle_share;  // of the device's time
};

Batch RunBatch(Engine& engine, int64_t requests) {
  const EngineStats before = engine.stats();
  const auto start = Clock::now();
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (int64_t i = 0; i < requests; ++i) {
    streams.push_back(*engine.Submit(Request(Tokens(kPromptTokens, i), kOutputTokens)));
  }
  for (const auto& stream : streams) stream->Wait();
  const double seconds = SecondsSince(start);
  const StepTimes& now = engine.stats().times;
  const double idle = now.idle - before.times.idle;
  const double busy = now.forward + now.sample + now.mask - before.times.forward -
                      before.times.sample - before.times.mask;
  return {static_cast<double>(requests * kOutputTokens) / seconds, idle / (idle + busy)};
}

void Throughput(const std::shared_ptr<const Runtime>& runtime, const EngineSettings& base) {
  EngineSettings one = base;
  one.memory.max_num_seqs = 1;
  const auto sequential = MakeEngine(runtime, one);
  (void)RunBatch(*sequential, 2);
  const Batch alone = RunBatch(*sequential, kRequests / 8);
  fmt::print("one at a time        {:9.0f} tokens/s, device idle {:.2f} %\n",
             alone.tokens_per_second, 100 * alone.idle_share);
  for (const bool async : {true, false}) {
    EngineSettings many = base;
    many.memory.max_num_seqs = kRequests;
    many.async_scheduling = async;
    const auto engine = MakeEngine(runtime, many);
    (void)RunBatch(*engine, kRequests);
    const Batch batch = RunBatch(*engine, kRequests);
    fmt::print("{} together, async {} {:9.0f} tokens/s ({:.1f} x), device idle {:.2f} %\n",
               kRequests, async ? "1" : "0", batch.tokens_per_second,
               batch.tokens_per_second / alone.tokens_per_second, 100 * batch.idle_share);
    std::fflush(stdout);
  }
}

double FirstToken(Engine& engine, const std::vector<int32_t>& prompt) {
  return (*engine.Submit(Request(prompt, 1)))->Wait().timings.first_token;
}

void Reuse(const std::shared_ptr<const Runtime>& runtime, EngineSettings settings,
           cache::PrefixMode mode, const char* name) {
  settings.prefix_mode = mode;
  const auto engine = MakeEngine(runtime, settings);
  (void)FirstToken(*engine, Tokens(2048, 99));  // grows the scratch memory
  std::vector<int32_t> prompt = Tokens(kLongPrompt, 0);
  const double cold = FirstToken(*engine, prompt);
  fmt::print("{} tokens, {:13}: first token {:7.1f} ms cold", kLongPrompt, name, 1e3 * cold);
  if (mode != cache::PrefixMode::kOff) {
    double first = 0;
    std::vector<double> warm;
    for (int64_t i = 0; i < 4; ++i) {
      // The last twentieth is new.
      const std::vector<int32_t> tail = Tokens(kLongPrompt / 20, 100 + i);
      std::ranges::copy(tail, prompt.end() - std::ssize(tail));
      const double seconds = FirstToken(*engine, prompt);
      if (i == 0) first = seconds;
      if (i > 0) warm.push_back(seconds);
    }
    std::ranges::sort(warm);
    fmt::print(", {:.1f} ms with 95 % known ({:.1f} %), then {:.1f} ms ({:.1f} %)", 1e3 * first,
               100 * first / cold, 1e3 * warm[1], 100 * warm[1] / cold);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

int Main() {
  const auto runtime = Runtime::Load(std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano",
                                     {CheckWeights::kNone});
  if (!runtime) {
    std::fprintf(stderr, "%s\n", runtime.error().message.c_str());
    return 1;
  }
  const EngineSettings settings = EngineSettingsOf(Options{});
  Throughput(*runtime, settings);
  Reuse(*runtime, settings, cache::PrefixMode::kOff, "off");
  Reuse(*runtime, settings, cache::PrefixMode::kFast, "fast");
  Reuse(*runtime, settings, cache::PrefixMode::kDeterministic, "deterministic");
  return 0;
}

}  // namespace
}  // namespace deepinfer

int main() { return deepinfer::Main(); }
