// Drafting changes how fast an answer comes, never a byte of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "chat/message.h"
#include "engine/prompt.h"
#include "tests/property/engine/engine_testing.h"

namespace deepinfer::testing {
namespace {

using cache::PrefixMode;

// Prompt and output of DraftRequests.
constexpr int64_t kLongestRequest = 330 + 12 + 40;

// Workloads a test; DEEPINFER_IDENTITY_WORKLOADS replaces it.
int Workloads(int count) {
  const char* value = std::getenv("DEEPINFER_IDENTITY_WORKLOADS");
  return value != nullptr ? std::atoi(value) : count;
}

std::vector<int32_t> ChatTokens(Random& random) {
  constexpr const char* kQuestions[] = {"Who are you?",
                                        "What is the second word of \\\"jolly curious\\\"?",
                                        "Reverse the word: lantern",
                                        "What is 12 + 31?",
                                        "Write 47 in words.",
                                        "Sort these numbers: 5, 2, 9"};
  const auto request = ParseChatRequest(
      fmt::format(R"({{"messages": [{{"role": "user", "content": "{}"}}], "mode": "{}"}})",
                  kQuestions[Between(random, 0, std::ssize(kQuestions) - 1)],
                  Chance(random, 0.5) ? "chat" : "thinking"));
  return ChatPrompt(*request, NanoRuntime()->tokenizer())->tokens;
}

// Half of them ask what the model knows to answer, so that drafts stand, and half do not.
std::vector<EngineRequest> DraftRequests(Random& random, int count, PrefillMode mode) {
  std::vector<EngineRequest> requests = RandomRequests(random, count, mode);
  for (EngineRequest& request : requests) {
    request.sampling.max_tokens += Between(random, 0, 30);
    if (Chance(random, 0.5)) continue;
    request.prompt = ChatTokens(random);
    // Often without what pushes the model off its way.
    if (Chance(random, 0.5)) {
      request.sampling.temperature = Chance(random, 0.5) ? 0 : 1;
      request.sampling.repetition_penalty = 1;
      request.sampling.frequency_penalty = 0;
      request.sampling.logit_bias.clear();
    }
  }
  return requests;
}

struct Mode {
  PrefillMode prefill;
  PrefixMode prefix;
};

// Anything that must not matter, memory that forces preemptions included.
EngineSettings DraftSettings(Random& random, const Mode& mode, int64_t depth) {
  EngineSettings settings = Alone(mode.prefill);
  settings.draft_tokens = depth;
  settings.threads = static_cast<int>(Between(random, 1, 3));
  settings.memory.block_tokens = std::array{8, 16, 32, 64}[Between(random, 0, 3)];
  settings.memory.max_num_seqs = Between(random, 1, 9);
  settings.max_num_batched_tokens = settings.memory.max_num_seqs * (1 + depth) +
                                    2 * settings.memory.block_tokens + Between(random, 0, 200);
  settings.memory.snapshot_interval = settings.memory.block_tokens * Between(random, 1, 8);
  const auto layout = *model::v41::CacheLayout::Create(
      NanoRuntime()->config(),
      {.block_tokens = settings.memory.block_tokens, .with_draft = true, .max_rollback = depth});
  // For the longest request, or for a few short ones that must preempt each other.
  const int64_t tokens = Chance(random, 0.5) ? kLongestRequest : Between(random, 64, 100);
  settings.memory.kv_cache_bytes = (tokens / settings.memory.block_tokens + 1) * layout.block_bytes;
  if (mode.prefix == PrefixMode::kDeterministic) {
    settings.memory.snapshot_bytes = Between(random, 1, 12) * layout.slot_bytes;
    settings.memory.kv_cache_bytes += settings.memory.snapshot_bytes;
  }
  settings.min_hit_tokens = Between(random, 1, 64);
  settings.prefix_mode = mode.prefix;
  settings.async_scheduling = Chance(random, 0.6);
  return settings;
}

class Drafting : public ::testing::TestWithParam<Mode> {};

TEST_P(Drafting, ARequestsBytesAreThoseOfDecodingWithoutDrafts) {
  Random random(GetParam().prefill == PrefillMode::kOff ? 11 : 12);
  const auto requests = DraftRequests(random, 60, GetParam().prefill);
  const auto plain = RunAlone(*MakeEngine(Alone(GetParam().prefill)), requests);
  int64_t count = 0, preemptions = 0, hits = 0, drafted = 0, accepted = 0;
  const int engines = Workloads(15) / 3;
  for (int i = 0; i < engines; ++i) {
    const int64_t depth = 1 + i % 5;
    const auto engine = MakeEngine(DraftSettings(random, GetParam(), depth));
    for (int round = 0; round < 3; ++round) {
      std::vector<size_t> order(static_cast<size_t>(Between(random, 1, 12)));
      std::vector<std::shared_ptr<RequestStream>> streams;
      for (size_t& which : order) {
        do {
          which = static_cast<size_t>(Between(random, 0, std::ssize(requests) - 1));
        } while (std::ssize(requests[which].prompt) + requests[which].sampling.max_tokens >
                 engine->max_model_len());
        auto stream = engine->Submit(requests[which]);
        ASSERT_TRUE(stream) << stream.error().message;
        streams.push_back(*stream);
        if (Chance(random, 0.2)) {
          (*engine->Submit(requests[which]))->Cancel();
        }
      }
      for (size_t k = 0; k < order.size(); ++k) {
        ASSERT_EQ(Bytes(streams[k]->Wait()), plain[order[k]])
            << "engine " << i << ", depth " << depth << ", request " << order[k];
      }
      count += std::ssize(order);
    }
    const EngineStats stats = engine->stats();
    preemptions += stats.preemptions;
    hits += stats.prefix_hit_tokens;
    drafted += stats.speculation.drafted_tokens;
    accepted += stats.speculation.accepted_tokens;
  }
  std::printf(
      "[ drafting ] %ld requests: %ld of %ld drafts stood, %ld preemptions, %ld tokens from the "
      "prefix cache\n",
      count, accepted, drafted, preemptions, hits);
  // Else the workloads do not do what they are for.
  EXPECT_GT(accepted, 0);
  EXPECT_GT(drafted, accepted);
  const bool cached = GetParam().prefix != PrefixMode::kOff;
  EXPECT_TRUE(cached || hits == 0) << hits;
  // Whether a few engines come to that depends on when their requests arrive.
  if (engines >= 20) {
    EXPECT_GT(preemptions, 0);
    EXPECT_EQ(hits > 0, cached);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Drafting,
                         ::testing::Values(Mode{PrefillMode::kOff, PrefixMode::kOff},
                                           Mode{PrefillMode::kCompact, PrefixMode::kOff},
                                           Mode{PrefillMode::kOff, PrefixMode::kDeterministic},
                                           Mode{PrefillMode::kCompact, PrefixMode::kDeterministic}),
                         [](const auto& info) {
                           return std::string(info.param.prefill == PrefillMode::kOff ? "Exact"
                                                                                      : "Compact") +
                                  (info.param.prefix == PrefixMode::kOff ? "" : "Cached");
                         });

// Breaks the promise: the rows of drafts are not those of decoding token by token.
class LaterRowsDiffer final : public model::v41::ForwardProbe {
 public:
  void OnTensor(std::string_view name, const TensorView& value, std::byte* bytes) override {
    if (name != "logits") return;
    auto* logits = reinterpret_cast<float*>(bytes);
    for (int64_t row = 1; row < value.shape[0]; ++row) logits[row * value.shape[1] + 300] += 40;
  }
};

TEST(DraftingCheck, TheComparisonSeesARowOfADraftThatDiffers) {
  LaterRowsDiffer probe;
  Random random(13);
  std::vector<EngineRequest> requests;
  for (int i = 0; i < 4; ++i) {
    requests.push_back({ChatTokens(random), {.temperature = 1, .max_tokens = 20}, {}});
  }
  EngineSettings settings = Alone(PrefillMode::kOff);
  settings.probe = &probe;
  const auto plain = RunAlone(*MakeEngine(settings), requests);
  settings.draft_tokens = 5;
  EXPECT_NE(RunAlone(*MakeEngine(settings), requests), plain);
}

TEST(DraftingCheck, MoreDraftsThanTheCheckpointsBlockAreRefusedWithBothNumbers) {
  EngineSettings settings = Alone(PrefillMode::kOff);
  settings.draft_tokens = NanoRuntime()->config().draft_block_size + 1;
  const auto engine = Engine::Create(NanoRuntime(), settings);
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message, ::testing::HasSubstr("use-nextn-decode is 6"));
  EXPECT_THAT(engine.error().message, ::testing::HasSubstr("0 to 5 are allowed"));
}

}  // namespace
}  // namespace deepinfer::testing
