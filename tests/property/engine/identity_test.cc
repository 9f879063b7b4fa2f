// The engine's promise: a request's bytes are those it has alone, whatever runs beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "tests/property/engine/engine_testing.h"

namespace deepinfer::testing {
namespace {

using cache::PrefixMode;

// Workloads a test; DEEPINFER_IDENTITY_WORKLOADS replaces it.
int Workloads(int count) {
  const char* value = std::getenv("DEEPINFER_IDENTITY_WORKLOADS");
  return value != nullptr ? std::atoi(value) : count;
}

// Requests arrive in random order at random moments, with others that are cancelled.
void RunWorkload(Random& random, Engine& engine, const std::vector<EngineRequest>& requests,
                 const std::vector<std::string>& alone, const std::string& where) {
  std::vector<size_t> fitting, order;
  for (size_t i = 0; i < requests.size(); ++i) {
    const int64_t tokens = std::ssize(requests[i].prompt) + requests[i].sampling.max_tokens;
    if (tokens <= engine.max_model_len()) fitting.push_back(i);
  }
  const auto any = [&] {
    return fitting[static_cast<size_t>(Between(random, 0, std::ssize(fitting) - 1))];
  };
  for (int64_t count = Between(random, 1, 10); count > 0; --count) order.push_back(any());
  std::vector<std::shared_ptr<RequestStream>> streams, doomed;
  for (const size_t i : order) {
    EngineRequest request = requests[i];
    request.options.priority = static_cast<int32_t>(Between(random, -2, 2));
    auto stream = engine.Submit(std::move(request));
    ASSERT_TRUE(stream) << stream.error().message;
    streams.push_back(*stream);
    if (Chance(random, 0.3)) {
      auto other = engine.Submit(requests[any()]);
      ASSERT_TRUE(other) << other.error().message;
      doomed.push_back(*other);
    }
    if (Chance(random, 0.2)) {
      std::this_thread::sleep_for(std::chrono::microseconds(Between(random, 0, 4000)));
    }
    if (!doomed.empty() && Chance(random, 0.5)) doomed.back()->Cancel();
  }
  for (const auto& stream : doomed) stream->Cancel();
  for (size_t i = 0; i < order.size(); ++i) {
    ASSERT_EQ(Bytes(streams[i]->Wait()), alone[order[i]]) << where << ", request " << order[i];
  }
  for (const auto& stream : doomed) stream->Wait();
}

struct Case {
  PrefillMode prefill;
  PrefixMode prefix;
};

class Identity : public ::testing::TestWithParam<Case> {};

TEST_P(Identity, ARequestsBytesDoNotDependOnWhatRunsBesideIt) {
  Random random(GetParam().prefill == PrefillMode::kOff ? 1 : 2);
  const std::vector<EngineRequest> requests = RandomRequests(random, 40, GetParam().prefill);
  const auto alone = RunAlone(*MakeEngine(Alone(GetParam().prefill)), requests);
  int64_t preemptions = 0, hits = 0, discarded = 0;
  const int engines = Workloads(60) / 3;
  for (int i = 0; i < engines; ++i) {
    const auto engine = MakeEngine(RandomSettings(random, GetParam().prefill, GetParam().prefix));
    for (int round = 0; round < 3; ++round) {
      ASSERT_NO_FATAL_FAILURE(
          RunWorkload(random, *engine, requests, alone, "engine " + std::to_string(i)));
    }
    preemptions += engine->stats().preemptions;
    hits += engine->stats().prefix_hit_tokens;
    discarded += engine->stats().discarded_rows;
  }
  std::printf(
      "[ identity ] %d engines: %ld preemptions, %ld tokens from the prefix cache, %ld rows "
      "discarded\n",
      engines, preemptions, hits, discarded);
  // Else the workloads no longer do what they are for.
  EXPECT_GT(preemptions, 0);
  EXPECT_GT(discarded, 0);
  EXPECT_EQ(hits > 0, GetParam().prefix != PrefixMode::kOff);
}

INSTANTIATE_TEST_SUITE_P(Modes, Identity,
                         ::testing::Values(Case{PrefillMode::kOff, PrefixMode::kOff},
                                           Case{PrefillMode::kCompact, PrefixMode::kOff},
                                           Case{PrefillMode::kOff, PrefixMode::kDeterministic},
                                           Case{PrefillMode::kCompact, PrefixMode::kDeterministic}),
                         [](const auto& info) {
                           return std::string(info.param.prefill == PrefillMode::kOff ? "Exact"
                                                                                      : "Compact") +
                                  (info.param.prefix == PrefixMode::kOff ? "" : "Cached");
                         });

// Breaks the promise: what a row gets depends on its place in the batch.
class PlaceInBatch final : public model::v41::ForwardProbe {
 public:
  void OnTensor(std::string_view name, const TensorView& value, std::byte* bytes) override {
    if (name != "logits") return;
    auto* logits = reinterpret_cast<float*>(bytes);
    for (int64_t row = 0; row < value.shape[0]; ++row) {
      logits[row * value.shape[1] + 300] += 0.01f * static_cast<float>(row);
    }
  }
};

TEST(Identity, TheComparisonSeesARowThatDependsOnItsPlaceInTheBatch) {
  PlaceInBatch place;
  Random random(3);
  std::vector<EngineRequest> requests = RandomRequests(random, 6, PrefillMode::kOff);
  for (EngineRequest& request : requests) {
    request.sampling = {.temperature = 1, .max_tokens = 6, .logprobs = 0, .ignore_eos = true};
  }
  EngineSettings settings = Alone(PrefillMode::kOff);
  settings.probe = &place;
  const auto alone = RunAlone(*MakeEngine(settings), requests);
  settings.memory.max_num_seqs = 6;
  const auto engine = MakeEngine(settings);
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (const EngineRequest& request : requests) streams.push_back(*engine->Submit(request));
  int different = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    different += Bytes(streams[i]->Wait()) != alone[i] ? 1 : 0;
  }
  EXPECT_GT(different, 0);
}

}  // namespace
}  // namespace deepinfer::testing
