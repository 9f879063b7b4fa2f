// Prompt and generation speed of the shipped checkpoint, from tokens to tokens.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "engine/generator.h"
#include "engine/runtime.h"

namespace deepinfer {
namespace {

std::filesystem::path NanoFolder() {
  return std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano";
}

constexpr int64_t kDecodePromptTokens = 16;
constexpr int64_t kDecodedTokens = 64;

// The first tokens of the held-out prose, which the model goes on writing.
Result<std::vector<int32_t>> Prose(const Runtime& runtime) {
  DI_ASSIGN_OR_RETURN(const std::string text, ReadFile(NanoFolder() / "eval/prose_heldout.txt"));
  return runtime.tokenizer().Encode(text, SpecialTokens::kParse);
}

GenerationRequest Request(const std::vector<int32_t>& prose, int64_t tokens, int64_t max_tokens) {
  GenerationRequest request;
  request.prompt.assign(prose.begin(),
                        prose.begin() + std::min<int64_t>(tokens, std::ssize(prose)));
  request.max_tokens = max_tokens;
  return request;
}

struct Measured {
  int64_t tokens;
  double seconds;
};

// `measure` picks the part of a generation's statistics that counts.
template <typename Measure>
void Bench(benchmark::State& state, const Runtime& runtime, const GenerationRequest& request,
           Measure&& measure) {
  model::v41::ForwardContext context(static_cast<int>(state.range(0)));
  Generator generator(runtime.model(), context, PrefillPolicy{});
  int64_t tokens = 0;
  for (auto _ : state) {
    const auto generation = generator.Generate(request);
    if (!generation) {
      state.SkipWithError(generation.error().message.c_str());
      return;
    }
    const auto [count, seconds] = measure(generation->stats);
    state.SetIterationTime(seconds);
    tokens += count;
  }
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsRate);
}

void Register(const Runtime& runtime, const std::vector<int32_t>& prose) {
  const auto add = [](const std::string& name, auto fn) {
    benchmark::RegisterBenchmark(name.c_str(), fn)
        ->ArgName("threads")
        ->Arg(1)
        ->Arg(ThreadCount(0))
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  for (const int64_t tokens : {64, 512}) {
    add("prefill_" + std::to_string(tokens),
        [&runtime, request = Request(prose, tokens, 1)](benchmark::State& state) {
          Bench(state, runtime, request, [](const GenerationStats& stats) {
            return Measured{stats.prompt_tokens, stats.prefill_seconds};
          });
        });
  }
  add("decode", [&runtime, request = Request(prose, kDecodePromptTokens, kDecodedTokens)](
                    benchmark::State& state) {
    Bench(state, runtime, request, [](const GenerationStats& stats) {
      return Measured{stats.decoded_tokens, stats.decode_seconds};
    });
  });
}

}  // namespace
}  // namespace deepinfer

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const auto runtime =
      deepinfer::Runtime::Load(deepinfer::NanoFolder(), {deepinfer::CheckWeights::kNone});
  const auto prose = runtime ? deepinfer::Prose(**runtime) : deepinfer::Forward(runtime.error());
  if (!prose) {
    std::fprintf(stderr, "%s\n", prose.error().message.c_str());
    return 1;
  }
  deepinfer::Register(**runtime, *prose);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
