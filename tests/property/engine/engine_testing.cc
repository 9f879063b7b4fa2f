#include "tests/property/engine/engine_testing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace deepinfer::testing {

namespace {

// Prompt and output of RandomRequests.
constexpr int64_t kLongestRequest = 330 + 12 + 10;

}  // namespace

const std::shared_ptr<const Runtime>& NanoRuntime() {
  static const std::shared_ptr<const Runtime> runtime = [] {
    const char* target = std::getenv("DEEPINFER_CPU_TARGET");
    auto loaded = Runtime::Load(std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano",
                                {CheckWeights::kNone, target != nullptr ? target : "auto"});
    if (!loaded) throw std::runtime_error(loaded.error().message);
    return *loaded;
  }();
  return runtime;
}

int64_t Between(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

EngineSettings Alone(PrefillMode mode) {
  EngineSettings settings;
  settings.prefill.mode = mode;
  settings.memory.max_num_seqs = 1;
  settings.memory.grammar_cache_bytes = 1 << 20;
  settings.memory.kv_cache_bytes = 16 << 20;
  settings.max_num_batched_tokens = 4096;
  settings.prefix_mode = cache::PrefixMode::kOff;
  settings.async_scheduling = false;
  return settings;
}

EngineSettings RandomSettings(Random& random, PrefillMode mode, cache::PrefixMode prefix) {
  EngineSettings settings = Alone(mode);
  settings.threads = static_cast<int>(Between(random, 1, 3));
  // Blocks for the longest request, or for a few short ones that must preempt each other.
  const bool tiny = Chance(random, 0.7);
  const auto sizes = tiny ? std::array{2, 4, 4, 8} : std::array{8, 16, 32, 64};
  settings.memory.block_tokens = sizes[static_cast<size_t>(Between(random, 0, 3))];
  settings.memory.max_num_seqs = Between(random, 1, 12);
  settings.max_num_batched_tokens =
      settings.memory.max_num_seqs + 2 * settings.memory.block_tokens + Between(random, 0, 200);
  settings.memory.snapshot_interval = settings.memory.block_tokens * Between(random, 1, 8);
  const auto layout = *model::v41::CacheLayout::Create(
      NanoRuntime()->config(), {.block_tokens = settings.memory.block_tokens});
  const int64_t tokens = tiny ? Between(random, 30, 48) : kLongestRequest;
  settings.memory.kv_cache_bytes = (tokens / settings.memory.block_tokens + 1) * layout.block_bytes;
  if (prefix == cache::PrefixMode::kDeterministic) {
    settings.memory.snapshot_bytes = Between(random, 1, 12) * layout.slot_bytes;
    settings.memory.kv_cache_bytes += settings.memory.snapshot_bytes;
  }
  settings.min_hit_tokens = Between(random, 1, 64);
  settings.prefix_mode = prefix;
  settings.eviction =
      Chance(random, 0.5) ? cache::EvictionKind::kLru : cache::EvictionKind::kS3Fifo;
  settings.async_scheduling = Chance(random, 0.75);
  return settings;
}

std::unique_ptr<Engine> MakeEngine(const EngineSettings& settings) {
  auto engine = Engine::Create(NanoRuntime(), settings);
  if (!engine) throw std::runtime_error(engine.error().message);
  return std::move(*engine);
}

namespace {

SamplingParams RandomParams(Random& random, PrefillMode mode) {
  SamplingParams params;
  params.max_tokens = Between(random, 1, 10);
  params.seq_seed = random();
  if (Chance(random, 0.7)) {
    params.temperature = 0.3 + 0.1 * static_cast<double>(Between(random, 0, 20));
    if (Chance(random, 0.3)) params.top_k = Between(random, 1, 50);
    if (Chance(random, 0.3)) params.top_p = 0.8;
    if (Chance(random, 0.2)) params.min_p = 0.05;
  }
  if (Chance(random, 0.2)) params.repetition_penalty = 1.3;
  if (Chance(random, 0.2)) params.frequency_penalty = 0.7;
  if (Chance(random, 0.1)) params.presence_penalty = -0.5;
  if (Chance(random, 0.2)) params.min_tokens = Between(random, 0, params.max_tokens);
  if (Chance(random, 0.2)) params.logprobs = Between(random, 0, 5);
  if (Chance(random, 0.1) && mode == PrefillMode::kOff) params.prompt_logprobs = 2;
  if (Chance(random, 0.2)) params.ignore_eos = true;
  if (Chance(random, 0.3)) params.stop = {"e", "an", ". "};
  if (Chance(random, 0.1)) params.n = Between(random, 2, 3);
  if (Chance(random, 0.1)) params.logit_bias = {{300, 20}, {301, -20}};
  if (Chance(random, 0.15)) {
    params.so_args = Chance(random, 0.5) ? StructuredOutput{"regex", "[0-9]{1,4}( [a-z]+){0,3}"}
                                         : StructuredOutput{"json_object", ""};
    params.min_tokens = 0;
  }
  return params;
}

}  // namespace

std::vector<EngineRequest> RandomRequests(Random& random, int count, PrefillMode mode) {
  std::vector<int32_t> shared;
  for (int i = 0; i < 400; ++i) {
    shared.push_back(static_cast<int32_t>(Between(random, 260, 7000)));
  }
  std::vector<EngineRequest> requests;
  for (int i = 0; i < count; ++i) {
    EngineRequest request;
    const int64_t longest = Chance(random, 0.12) ? 330 : 24;
    if (Chance(random, 0.7)) {
      request.prompt.assign(shared.begin(), shared.begin() + Between(random, 0, longest));
    }
    for (int64_t more = Between(random, 1, 12); more > 0; --more) {
      request.prompt.push_back(static_cast<int32_t>(Between(random, 260, 7000)));
    }
    request.sampling = RandomParams(random, mode);
    requests.push_back(std::move(request));
  }
  return requests;
}

std::string Bytes(const RequestOutput& output) {
  const auto logprobs = [](const std::vector<TokenLogprobs>& all) {
    std::string text;
    for (const TokenLogprobs& one : all) {
      text += fmt::format(" {}:{:08x}#{}", one.chosen.token,
                          std::bit_cast<uint32_t>(one.chosen.logprob), one.rank);
      for (const TokenLogprob& top : one.top) {
        text += fmt::format(",{}:{:08x}", top.token, std::bit_cast<uint32_t>(top.logprob));
      }
    }
    return text;
  };
  std::string text = fmt::format("prompt{}", logprobs(output.prompt_logprobs));
  for (const CompletionOutput& choice : output.outputs) {
    text +=
        fmt::format("\nchoice {} {} {} \"{}\" stop {} {}{}", choice.index,
                    choice.finish_reason ? FinishReasonName(*choice.finish_reason) : "none",
                    fmt::join(choice.token_ids, " "), choice.text, choice.stop_token.value_or(-1),
                    choice.stop_string.value_or("-"), logprobs(choice.logprobs));
    if (!choice.error.empty()) text += " error " + choice.error;
  }
  return text;
}

std::vector<std::string> RunAlone(Engine& engine, const std::vector<EngineRequest>& requests) {
  std::vector<std::string> bytes;
  for (const EngineRequest& request : requests) {
    auto stream = engine.Submit(request);
    if (!stream) throw std::runtime_error(stream.error().message);
    bytes.push_back(Bytes((*stream)->Wait()));
  }
  return bytes;
}

}  // namespace deepinfer::testing
