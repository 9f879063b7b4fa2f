// What goes wrong for one request, or for all, ends with a clear error and harms nobody else.
#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>

#include "tests/support/balance.h"

namespace deepinfer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::shared_ptr<const Runtime>& Nano() {
  static const std::shared_ptr<const Runtime> runtime =
      Runtime::Load(DEEPINFER_SOURCE_DIR "/models/nano", {CheckWeights::kNone}).value();
  return runtime;
}

std::unique_ptr<Engine> MakeEngine(const EngineSettings& settings = {}) {
  return std::move(Engine::Create(Nano(), settings).value());
}

EngineRequest Request(int32_t first, SamplingParams sampling) {
  EngineRequest request;
  for (int32_t i = 0; i < 20; ++i) request.prompt.push_back(300 + first * 131 % 3000 + i * 7);
  request.sampling = std::move(sampling);
  return request;
}

std::string ErrorOf(Engine& engine, EngineRequest request) {
  const auto stream = engine.Submit(std::move(request));
  return stream ? "accepted" : stream.error().message;
}

TEST(EngineFaults, ParametersOutOfRangeAreRefusedWithTheRange) {
  const auto engine = MakeEngine();
  const auto error = [&](const std::function<void(SamplingParams&)>& change) {
    SamplingParams params;
    change(params);
    return ErrorOf(*engine, Request(1, params));
  };
  EXPECT_THAT(error([](auto& p) { p.temperature = -1; }), HasSubstr("temperature -1"));
  EXPECT_THAT(error([](auto& p) { p.top_p = 1.5; }), HasSubstr("top_p 1.5"));
  EXPECT_THAT(error([](auto& p) { p.n = 0; }), HasSubstr("n 0"));
  EXPECT_THAT(error([](auto& p) { p.max_tokens = int64_t{1} << 40; }), HasSubstr("max_tokens"));
  EXPECT_THAT(error([](auto& p) { p.min_tokens = 9999; }), HasSubstr("min_tokens 9999"));
  EXPECT_THAT(error([](auto& p) { p.logprobs = 21; }), HasSubstr("logprobs 21"));
  EXPECT_THAT(error([](auto& p) { p.logit_bias = {{99999, 1}}; }), HasSubstr("99999"));
  EXPECT_THAT(error([](auto& p) { p.stop = {""}; }), HasSubstr("stop"));
  EXPECT_THAT(error([](auto& p) { p.stop = {"\xFF"}; }), HasSubstr("stop"));
  EXPECT_THAT(error([](auto& p) { p.stop.assign(10000, "x"); }),
              AllOf(HasSubstr("10000"), HasSubstr("64")));
  EXPECT_THAT(error([](auto& p) { p.so_args = StructuredOutput{"yaml", "x"}; }),
              AllOf(HasSubstr("\"yaml\""), HasSubstr("json_schema")));
  EXPECT_THAT(error([](auto& p) { p.so_args = StructuredOutput{"regex", ""}; }),
              HasSubstr("schema"));
  EngineRequest hurried = Request(1, {});
  hurried.options.priority = 2000;
  EXPECT_THAT(ErrorOf(*engine, hurried), HasSubstr("priority 2000"));
}

TEST(EngineFaults, APromptBeyondTheContextIsRefusedAndAnAnswerBeyondItCut) {
  EngineSettings settings;
  settings.memory.max_model_len = 30;
  const auto engine = MakeEngine(settings);
  EngineRequest longer = Request(1, {});
  longer.prompt.resize(30, 400);
  EXPECT_THAT(ErrorOf(*engine, longer), AllOf(HasSubstr("30 tokens"), HasSubstr("at most 29")));
  const auto cut = (*engine->Submit(Request(1, {.max_tokens = 500, .ignore_eos = true})))->Wait();
  EXPECT_EQ(cut.outputs[0].finish_reason, FinishReason::kContext);
  EXPECT_EQ(cut.outputs[0].token_ids.size(), 10u);
}

TEST(EngineFaults, MemoryThatDoesNotFitIsRefusedAtTheStartWithTheNumbers) {
  const auto error = [](const EngineSettings& settings) {
    const auto engine = Engine::Create(Nano(), settings);
    return engine ? "made" : engine.error().message;
  };
  EngineSettings tiny;
  tiny.memory.kv_cache_bytes = 100;
  EXPECT_THAT(error(tiny), AllOf(HasSubstr("does not fit"), HasSubstr("KV cache, 0 blocks")));
  EngineSettings huge;
  huge.memory.kv_cache_bytes = int64_t{1} << 60;
  EXPECT_THAT(error(huge), AllOf(HasSubstr("does not fit"), HasSubstr("workspace")));
  EngineSettings longer;
  longer.memory.max_model_len = 100000;
  EXPECT_THAT(error(longer), AllOf(HasSubstr("max-model-len 100000"), HasSubstr("8192")));
  EngineSettings few_rows;
  few_rows.max_num_batched_tokens = 100;
  EXPECT_THAT(error(few_rows), HasSubstr("max_batched_tokens is 100"));
  EngineSettings odd;
  odd.memory.block_tokens = 7;
  odd.memory.snapshot_interval = 7;
  EXPECT_THAT(error(odd), HasSubstr("even"));
}

TEST(EngineFaults, ARequestThatNeedsMoreBlocksThanThereAreIsRefusedAtOnce) {
  EngineSettings settings;
  settings.prefix_mode = cache::PrefixMode::kOff;
  const auto layout = *model::v41::CacheLayout::Create(Nano()->config(), {.block_tokens = 64});
  settings.memory.kv_cache_bytes = 3 * layout.block_bytes;
  const auto engine = MakeEngine(settings);
  EngineRequest longer = Request(1, {});
  longer.prompt.resize(192, 400);
  EXPECT_THAT(ErrorOf(*engine, longer), AllOf(HasSubstr("192 tokens"), HasSubstr("at most 191")));
  EXPECT_EQ((*engine->Submit(Request(1, {.max_tokens = 3})))->Wait().outputs[0].finish_reason,
            FinishReason::kLength);
}

TEST(EngineFaults, ACallbackThatThrowsEndsItsOwnRequest) {
  const auto engine = MakeEngine();
  EngineRequest thrower = Request(1, {.max_tokens = 4000, .ignore_eos = true});
  thrower.options.on_output = [](const OutputDelta&) { throw std::runtime_error("no more"); };
  const auto failed = *engine->Submit(std::move(thrower));
  const auto other = *engine->Submit(Request(2, {.max_tokens = 30, .ignore_eos = true}));
  const RequestOutput output = failed->Wait();
  EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::kError);
  EXPECT_THAT(output.outputs[0].error, HasSubstr("the callback threw: no more"));
  EXPECT_EQ(other->Wait().outputs[0].finish_reason, FinishReason::kLength);
}

TEST(EngineFaults, AnEngineThatGoesEndsWhatRuns) {
  std::vector<std::shared_ptr<RequestStream>> streams;
  std::atomic<int> ends{0};
  {
    const auto engine = MakeEngine();
    for (int32_t i = 0; i < 100; ++i) {
      EngineRequest request = Request(i, {.max_tokens = 4000, .n = 1 + i % 2, .ignore_eos = true});
      if (i % 3 == 0) {
        request.options.on_output = [&](const OutputDelta& d) { ends += d.finish_reason ? 1 : 0; };
      }
      if (i % 10 == 0) {
        request.sampling.so_args = StructuredOutput{"regex", "(a|b){1000,}"};
      }
      streams.push_back(*engine->Submit(std::move(request)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  int expected_ends = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    const RequestOutput output = streams[i]->Wait();
    EXPECT_TRUE(output.finished);
    for (const auto& choice : output.outputs) {
      EXPECT_EQ(choice.finish_reason, FinishReason::kCancelled) << choice.error;
    }
    if (i % 3 == 0) expected_ends += static_cast<int>(output.outputs.size());
    streams[i]->Cancel();  // nobody listens any more
  }
  EXPECT_EQ(ends, expected_ends);
}

// Makes the first row of the first batch of at least three rows a NaN.
class Poison final : public model::v41::ForwardProbe {
 public:
  void OnTensor(std::string_view name, const TensorView& value, std::byte* bytes) override {
    if (name != "logits" || value.shape[0] < 3 || done) return;
    const float nan = std::nanf("");
    std::memcpy(bytes + 700 * sizeof(float), &nan, sizeof(nan));
    done = true;
  }
  std::atomic<bool> done{false};
};

TEST(EngineFaults, LogitsThatAreNoNumbersFailTheirRequestAlone) {
  for (const bool async : {true, false}) {
    Poison poison;
    EngineSettings settings;
    settings.async_scheduling = async;
    const auto clean = MakeEngine(settings);
    settings.probe = &poison;
    const auto engine = MakeEngine(settings);
    std::vector<std::shared_ptr<RequestStream>> streams, alone;
    const SamplingParams params{.temperature = 1, .max_tokens = 12, .ignore_eos = true};
    for (int32_t i = 0; i < 6; ++i) {
      streams.push_back(*engine->Submit(Request(i, params)));
      alone.push_back(*clean->Submit(Request(i, params)));
    }
    int failed = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      const CompletionOutput output = streams[i]->Wait().outputs[0];
      if (output.finish_reason == FinishReason::kError) {
        ++failed;
        EXPECT_THAT(output.error, HasSubstr("the logit of token 700 is nan"));
      } else {
        EXPECT_EQ(output.token_ids, alone[i]->Wait().outputs[0].token_ids);
      }
    }
    EXPECT_EQ(failed, 1);
    EXPECT_EQ(engine->stats().failed, 1);
  }
}

TEST(EngineFaults, AGrammarThatDoesNotCompileEndsItsRequestWithThePlace) {
  const auto engine = MakeEngine();
  SamplingParams params{.max_tokens = 5};
  params.so_args = StructuredOutput{"ebnf", "root ::= \"a"};
  const auto broken = *engine->Submit(Request(1, params));
  const auto other = *engine->Submit(Request(2, {.max_tokens = 5, .ignore_eos = true}));
  const CompletionOutput output = broken->Wait().outputs[0];
  EXPECT_EQ(output.finish_reason, FinishReason::kError);
  EXPECT_THAT(output.error, HasSubstr("so_args: "));
  EXPECT_EQ(other->Wait().outputs[0].token_ids.size(), 5u);
}

TEST(EngineFaults, DeadlinesEndRequestsThatWaitAndThatRun) {
  const auto engine = MakeEngine();
  EngineRequest late = Request(1, {.max_tokens = 5});
  late.options.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_EQ((*engine->Submit(late))->Wait().outputs[0].finish_reason, FinishReason::kDeadline);
  EngineRequest soon = Request(2, {.max_tokens = 8000, .ignore_eos = true});
  soon.options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  const RequestOutput output = (*engine->Submit(soon))->Wait();
  EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::kDeadline);
  EXPECT_TRUE(testing::WaitForBalance(*engine));
}

}  // namespace
}  // namespace deepinfer
