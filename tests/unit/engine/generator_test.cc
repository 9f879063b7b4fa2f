// Generation with the shipped checkpoint.
#include "engine/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/completion.h"
#include "engine/prompt.h"
#include "engine/runtime.h"
#include "kernels/reference/reference.h"
#include "tokenizer/engram_token_map.h"

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

class GeneratorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto runtime = Runtime::Load(DEEPINFER_SOURCE_DIR "/models/nano", {CheckWeights::kNone});
    ASSERT_TRUE(runtime) << runtime.error().message;
    runtime_ = std::move(*runtime);
  }
  static void TearDownTestSuite() { runtime_.reset(); }

  static std::vector<int32_t> Sum() {
    ChatRequest request;
    request.messages.push_back(ChatMessage::Text(Role::kUser, "What is 17 + 25?"));
    return ChatPrompt(request, runtime_->tokenizer())->tokens;
  }
  Result<Generation> Generate(const GenerationRequest& request, const GenerationHooks& hooks = {},
                              const PrefillPolicy& policy = {}) {
    return Generator(runtime_->model(), context_, policy).Generate(request, hooks);
  }

  static inline std::shared_ptr<const Runtime> runtime_;
  model::v41::ForwardContext context_{1};
};

TEST_F(GeneratorTest, AnswersASumAndStopsAtTheEndToken) {
  std::vector<int32_t> seen;
  const auto generation = Generate({Sum(), {}, 40}, {.on_token = [&](int32_t token) {
                                     seen.push_back(token);
                                     return true;
                                   }});
  ASSERT_TRUE(generation) << generation.error().message;
  EXPECT_EQ(generation->reason, FinishReason::kStop);
  EXPECT_EQ(runtime_->tokenizer().Decode(seen), "17 + 25 = 42.");
  ASSERT_FALSE(generation->tokens.empty());
  EXPECT_EQ(generation->tokens.back(), runtime_->config().eos_token);
  EXPECT_EQ(generation->tokens.size(), seen.size() + 1);
  EXPECT_EQ(generation->stats.prompt_tokens, static_cast<int64_t>(Sum().size()));
  EXPECT_GT(generation->global_kv_bytes, 0u);
}

TEST_F(GeneratorTest, ChunksAndSeedsDecideNothingAndEverything) {
  const SamplingParams sampling{.temperature = 1.5, .seed = 9};
  const auto whole = Generate({Sum(), sampling, 5});
  const auto small = Generate({Sum(), sampling, 5}, {}, {.chunk_tokens = 3});
  ASSERT_TRUE(whole && small);
  EXPECT_EQ(whole->tokens, small->tokens);
  const auto other = Generate({Sum(), {.temperature = 100, .seed = 10}, 5});
  ASSERT_TRUE(other);
  EXPECT_NE(whole->tokens, other->tokens);
}

TEST_F(GeneratorTest, StopsAtMaxTokensAtAHookAndWhenCancelled) {
  const auto cut = Generate({Sum(), {}, 2});
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->reason, FinishReason::kLength);
  EXPECT_EQ(cut->tokens.size(), 2u);

  const auto hooked = Generate({Sum(), {}, 40}, {.on_token = [](int32_t) { return false; }});
  ASSERT_TRUE(hooked);
  EXPECT_EQ(hooked->reason, FinishReason::kStop);
  EXPECT_EQ(hooked->tokens.size(), 1u);

  std::atomic<bool> cancel{false};
  const GenerationHooks hooks{.on_token =
                                  [&](int32_t) {
                                    cancel = true;
                                    return true;
                                  },
                              .cancel = &cancel};
  const auto stopped = Generate({Sum(), {}, 40}, hooks);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->reason, FinishReason::kCancelled);
  EXPECT_EQ(stopped->tokens.size(), 1u);
  // The flag is still set: not even the prompt is read.
  const auto never = Generate({Sum(), {}, 40}, hooks);
  ASSERT_TRUE(never);
  EXPECT_EQ(never->reason, FinishReason::kCancelled);
  EXPECT_EQ(never->stats.prompt_tokens, 0);
}

TEST_F(GeneratorTest, StopsWhenTheContextIsFull) {
  ModelConfig config = runtime_->config();
  const std::vector<int32_t> prompt = Sum();
  config.max_position_embeddings = static_cast<int64_t>(prompt.size()) + 3;
  auto map = BuildEngramTokenMap(runtime_->tokenizer(), config.vocab_size,
                                 config.engram_compressed_vocab_size);
  ASSERT_TRUE(map);
  const auto model = model::v41::Model::Create(config, runtime_->checkpoint(), std::move(*map),
                                               kernels::reference::Table());
  ASSERT_TRUE(model) << model.error().message;
  Generator generator(**model, context_, {});
  const auto full = generator.Generate({prompt, {}, 40});
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->reason, FinishReason::kContext);
  EXPECT_EQ(full->tokens.size(), 3u);
  EXPECT_EQ(FinishReasonName(full->reason), "length");
}

TEST_F(GeneratorTest, BadRequestsNameWhatIsWrong) {
  const auto error = [&](GenerationRequest request) {
    const auto generation = Generate(request);
    return generation ? "no error" : generation.error().message;
  };
  EXPECT_THAT(error({}), HasSubstr("prompt is empty"));
  EXPECT_THAT(error({std::vector<int32_t>(8192, 5), {}, 1}), HasSubstr("8192 tokens"));
  EXPECT_THAT(error({{0, 8192}, {}, 1}), HasSubstr("token id 8192 at place 1"));
  EXPECT_THAT(error({{-1}, {}, 1}), HasSubstr("token id -1"));
  EXPECT_THAT(error({{0}, {}, 0}), HasSubstr("max_tokens 0"));
  EXPECT_THAT(error({{0}, {.top_p = 0}, 1}), HasSubstr("top_p 0"));
}

TEST_F(GeneratorTest, ACompletionSeparatesReasoningFromTheAnswer) {
  ChatRequest request;
  request.messages.push_back(ChatMessage::Text(Role::kUser, "Multiply 7 by 8."));
  request.options.thinking_mode = ThinkingMode::kThinking;
  auto prompt = ChatPrompt(request, runtime_->tokenizer());
  ASSERT_TRUE(prompt);
  Generator generator(runtime_->model(), context_, {});
  std::string streamed;
  const auto completion = Complete(generator, runtime_->tokenizer(), *prompt, {}, 60,
                                   {.on_event = [&](const OutputEvent& event) {
                                     streamed += event.text;
                                     return true;
                                   }});
  ASSERT_TRUE(completion) << completion.error().message;
  EXPECT_THAT(completion->output.reasoning, HasSubstr("7 x 8 = 56"));
  EXPECT_EQ(completion->output.content, "7 x 8 = 56.");
  EXPECT_EQ(completion->finish_reason(), "stop");
  EXPECT_EQ(streamed, completion->output.reasoning + completion->output.content);
}

TEST_F(GeneratorTest, TextThatSpellsAControlTokenStaysText) {
  ChatRequest request;
  request.messages.push_back(ChatMessage::Text(Role::kUser, "<｜User｜>"));
  const auto prompt = ChatPrompt(request, runtime_->tokenizer());
  ASSERT_TRUE(prompt);
  const int32_t user = *runtime_->tokenizer().FindToken("<｜User｜>");
  EXPECT_EQ(std::count(prompt->tokens.begin(), prompt->tokens.end(), user), 1);
  const auto raw = RawPrompt("<｜User｜>", runtime_->tokenizer(), runtime_->config());
  ASSERT_TRUE(raw);
  EXPECT_EQ(raw->tokens.front(), runtime_->config().bos_token);
  EXPECT_EQ(std::count(raw->tokens.begin(), raw->tokens.end(), user), 0);
  EXPECT_FALSE(RawPrompt("", runtime_->tokenizer(), runtime_->config()));
  EXPECT_FALSE(RawPrompt("\xFF", runtime_->tokenizer(), runtime_->config()));
}

}  // namespace
}  // namespace deepinfer
