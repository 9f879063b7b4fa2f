// A batched draft on the shipped checkpoint: its cost, beside that of the step that verifies it.
// Both use random text of the same lengths; costs do not depend on what is drafted.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/topology.h"
#include "engine/runtime.h"

namespace deepinfer {
namespace {

using model::v41::DraftInput;
using model::v41::DraftOutput;
using model::v41::ForwardContext;
using model::v41::HeadOutput;
using model::v41::SequenceChunk;
using model::v41::SequenceState;

constexpr int64_t kContextTokens = 140;
constexpr int64_t kMostSequences = 64;

class Bench {
 public:
  Bench(const Runtime& runtime, int threads) : model_(runtime.model()), context_(threads) {}

  // Errors: those of a forward.
  Status Prefill() {
    std::vector<int32_t> prompt;
    for (int64_t i = 0; i < kContextTokens; ++i) {
      prompt.push_back(static_cast<int32_t>(260 + i * 7919 % 7000));
    }
    for (int64_t i = 0; i < kMostSequences; ++i) {
      prompt[1] = static_cast<int32_t>(300 + i);
      states_.push_back(model_.NewSequence(true));
      inputs_.push_back({.state = states_.back().get(),
                         .next = prompt[1],
                         .drafts = model_.config().draft_block_size});
      const SequenceChunk chunk{.state = states_.back().get(), .tokens = prompt};
      HeadOutput head;
      DI_RETURN_IF_ERROR(model_.Forward(context_, {&chunk, 1}, head));
    }
    return {};
  }

  void Draft(benchmark::State& state) {
    const auto inputs = std::span(inputs_).first(static_cast<size_t>(state.range(0)));
    DraftOutput out;
    for (auto _ : state) {
      const Status status = model_.Draft(context_, inputs, model::v41::GreedyDraft, out);
      if (!status) state.SkipWithError(status.error().message.c_str());
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
  }

  // A step of range(0) sequences with range(1) drafts each, all of which are taken back.
  void Verify(benchmark::State& state) {
    const std::vector<int32_t> tokens = {300, 301, 302, 303, 304, 305};
    const int64_t rows = 1 + state.range(1);
    std::vector<SequenceChunk> chunks;
    for (int64_t i = 0; i < state.range(0); ++i) {
      chunks.push_back({.state = states_[static_cast<size_t>(i)].get(),
                        .tokens = std::span(tokens).first(static_cast<size_t>(rows)),
                        .logits_rows = rows});
    }
    HeadOutput head{.topk = 1};
    for (auto _ : state) {
      Status status = model_.Forward(context_, chunks, head);
      for (const SequenceChunk& chunk : chunks) {
        if (status) status = chunk.state->Rollback(chunk.state->length() - state.range(1));
      }
      if (!status) state.SkipWithError(status.error().message.c_str());
    }
    state.SetItemsProcessed(state.iterations() * state.range(0) * rows);
  }

 private:
  const model::v41::Model& model_;
  ForwardContext context_;
  std::vector<std::unique_ptr<SequenceState>> states_;
  std::vector<DraftInput> inputs_;
};

int Run(int argc, char** argv) {
  const auto runtime = Runtime::Load(std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano",
                                     {CheckWeights::kNone, "auto"});
  if (!runtime) {
    std::fprintf(stderr, "%s\n", runtime.error().message.c_str());
    return 1;
  }
  Bench bench(**runtime, DefaultThreads());
  if (const Status status = bench.Prefill(); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  benchmark::RegisterBenchmark("Draft", [&](benchmark::State& state) { bench.Draft(state); })
      ->RangeMultiplier(4)
      ->Range(1, 64)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("Verify", [&](benchmark::State& state) { bench.Verify(state); })
      ->ArgsProduct({{1, 4, 16, 64}, {0, 1, 3, 5}})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace deepinfer

int main(int argc, char** argv) { return deepinfer::Run(argc, argv); }
