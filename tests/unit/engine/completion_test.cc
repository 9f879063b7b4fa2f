// Generation with the shipped checkpoint.
#include "engine/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "engine/prompt.h"
#include "engine/runtime.h"
#include "kernels/cpu/cpu.h"
#include "sampling/sampler.h"
#include "tokenizer/engram_token_map.h"

namespace deepinfer {
namespace {

using model::v41::ForwardContext;
using ::testing::HasSubstr;

class CompletionTest : public ::testing::Test {
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
  // An engine of its own for every call: nothing is left of the calls before.
  static Result<Completion> Generate(std::vector<int32_t> prompt, const SamplingParams& sampling,
                                     const CompletionHooks& hooks = {},
                                     const EngineSettings& settings = {}) {
    DI_ASSIGN_OR_RETURN(const auto engine, Engine::Create(runtime_, settings));
    return Complete(*engine, {std::move(prompt), std::nullopt}, sampling, hooks);
  }

  // Views `source`.
  static Result<std::unique_ptr<model::v41::Model>> MakeModel(const TensorSource& source,
                                                              const ModelConfig* config = nullptr) {
    if (config == nullptr) config = &runtime_->config();
    DI_ASSIGN_OR_RETURN(auto map, BuildEngramTokenMap(runtime_->tokenizer(), config->vocab_size,
                                                      config->engram_compressed_vocab_size));
    DI_ASSIGN_OR_RETURN(const kernels::KernelTable* table, kernels::cpu::SelectTarget("auto"));
    return model::v41::Model::Create(*config, source, std::move(map), *table);
  }

  static inline std::shared_ptr<const Runtime> runtime_;
  model::v41::ForwardContext context_{1};
};

TEST_F(CompletionTest, AnswersASumAndStopsAtTheEndToken) {
  const auto completion = Generate(Sum(), {.max_tokens = 40});
  ASSERT_TRUE(completion) << completion.error().message;
  EXPECT_EQ(completion->reason, FinishReason::kStop);
  EXPECT_EQ(completion->output.content, "17 + 25 = 42.");
  ASSERT_FALSE(completion->tokens.empty());
  EXPECT_EQ(completion->tokens.back(), runtime_->config().eos_token);
  EXPECT_EQ(completion->usage.prompt_tokens, static_cast<int64_t>(Sum().size()));
  EXPECT_EQ(completion->usage.completion_tokens, std::ssize(completion->tokens));
}

TEST_F(CompletionTest, ChunksAndSeedsDecideNothingAndEverything) {
  const SamplingParams sampling{.temperature = 1.5, .seq_seed = 9, .max_tokens = 5};
  EngineSettings small;
  small.memory.block_tokens = 2;
  small.memory.max_num_seqs = 1;
  small.memory.snapshot_interval = 2;
  small.max_num_batched_tokens = 5;
  const auto whole = Generate(Sum(), sampling);
  const auto chunks = Generate(Sum(), sampling, {}, small);
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_TRUE(chunks) << chunks.error().message;
  EXPECT_EQ(whole->tokens, chunks->tokens);
  const auto other = Generate(Sum(), {.temperature = 100, .seq_seed = 10, .max_tokens = 5});
  ASSERT_TRUE(other);
  EXPECT_NE(whole->tokens, other->tokens);
}

// Nano's weights, but for the head's rows that a test writes.
class OtherHead : public TensorSource {
 public:
  explicit OtherHead(const TensorSource& nano) : nano_(nano), head_(*nano.Find("head.weight")) {
    bytes_.assign(head_.data, head_.data + head_.bytes());
    head_.data = bytes_.data();
  }
  const TensorView* Find(std::string_view name) const override {
    return name == "head.weight" ? &head_ : nano_.Find(name);
  }
  void CopyRow(int64_t from, int64_t to) {
    std::memcpy(Row(to), Row(from), static_cast<size_t>(RowBytes()));
  }
  void FillRow(int64_t row, float value) {
    for (int64_t i = 0; i < head_.shape[1]; ++i) {
      const bf16 rounded = ToBf16(value);
      std::memcpy(Row(row) + i * 2, &rounded, 2);
    }
  }
  int64_t rows() const { return head_.shape[0]; }

 private:
  int64_t RowBytes() const { return head_.shape[1] * 2; }
  std::byte* Row(int64_t row) { return bytes_.data() + row * RowBytes(); }

  const TensorSource& nano_;
  TensorView head_;
  std::vector<std::byte> bytes_;
};

// Greedy tokens by whole rows of logits, or the error of the first that cannot be drawn.
Result<std::vector<int32_t>> GreedyByRows(const model::v41::Model& model, ForwardContext& context,
                                          std::vector<int32_t> tokens, int steps) {
  const auto state = model.NewSequence();
  Sampler sampler;
  std::vector<float> logits;
  std::vector<int32_t> out;
  for (int i = 0; i < steps; ++i) {
    const model::v41::SequenceChunk chunk{.state = state.get(), .tokens = tokens, .logits_rows = 1};
    DI_RETURN_IF_ERROR(model.Forward(context, {&chunk, 1}, logits));
    DI_ASSIGN_OR_RETURN(const int32_t token, sampler.Sample(logits, {}, state->length()));
    out.push_back(token);
    if (token == model.config().eos_token) break;
    tokens = {token};
  }
  return out;
}

// The same from the best logit of each row alone, as the executor does.
Result<std::vector<int32_t>> GreedyByBest(const model::v41::Model& model, ForwardContext& context,
                                          std::vector<int32_t> tokens, int steps) {
  const auto state = model.NewSequence();
  model::v41::HeadOutput head{.topk = 1};
  std::vector<int32_t> out;
  for (int i = 0; i < steps; ++i) {
    const model::v41::SequenceChunk chunk{.state = state.get(), .tokens = tokens, .logits_rows = 1};
    DI_RETURN_IF_ERROR(model.Forward(context, {&chunk, 1}, head));
    DI_ASSIGN_OR_RETURN(const int32_t token,
                        BestToken(head.logits[0], head.ids[0], model.config().vocab_size));
    out.push_back(token);
    if (token == model.config().eos_token) break;
    tokens = {token};
  }
  return out;
}

TEST_F(CompletionTest, GreedyTokensFromTheBestLogitAloneAreThoseOfWholeRows) {
  const auto rows = GreedyByRows(runtime_->model(), context_, Sum(), 40);
  const auto best = Generate(Sum(), {.max_tokens = 40});
  ASSERT_TRUE(rows && best);
  EXPECT_EQ(best->tokens, *rows);
  // A bias far from every other logit needs the row, and changes nothing.
  const auto biased = Generate(Sum(), {.logit_bias = {{300, -100}}, .max_tokens = 40});
  ASSERT_TRUE(biased);
  EXPECT_EQ(biased->tokens, *rows);
}

TEST_F(CompletionTest, OfEqualLogitsTheLowestIdIsTaken) {
  OtherHead source(runtime_->checkpoint());
  // Every logit twice, the second one at a distance that other threads compute.
  const int64_t half = source.rows() / 2;
  for (int64_t row = 0; row < half; ++row) source.CopyRow(half + row, row);
  const auto model = MakeModel(source);
  ASSERT_TRUE(model) << model.error().message;
  model::v41::ForwardContext context(2);
  const auto rows = GreedyByRows(**model, context, Sum(), 12);
  const auto best = GreedyByBest(**model, context, Sum(), 12);
  ASSERT_TRUE(rows && best);
  EXPECT_EQ(*best, *rows);
  for (const int32_t token : *best) EXPECT_LT(token, half);
}

TEST_F(CompletionTest, LogitsThatAreNoNumbersAreTheSamplersErrors) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [row, value, text] : {std::tuple(700, kNan, "the logit of token 700 is nan"),
                                         std::tuple(-1, kNan, "the logit of token 0 is nan")}) {
    OtherHead source(runtime_->checkpoint());
    for (int64_t r = 0; r < source.rows(); ++r) {
      if (row < 0 || r == row) source.FillRow(r, value);
    }
    const auto model = MakeModel(source);
    ASSERT_TRUE(model) << model.error().message;
    const auto best = GreedyByBest(**model, context_, Sum(), 3);
    const auto rows = GreedyByRows(**model, context_, Sum(), 3);
    ASSERT_FALSE(best);
    ASSERT_FALSE(rows);
    EXPECT_EQ(best.error().message, text);
    EXPECT_EQ(best.error().message, rows.error().message);
    EXPECT_EQ(best.error().code, rows.error().code);
  }
}

TEST_F(CompletionTest, TheHeadsBestLogitsAreTheRowsInOrder) {
  const std::vector<int32_t> prompt = Sum();
  const auto whole_state = runtime_->model().NewSequence();
  const auto best_state = runtime_->model().NewSequence();
  model::v41::HeadOutput whole, best{.topk = 5};
  constexpr int64_t kRows = 3;
  for (const auto& [state, head] :
       {std::pair(whole_state.get(), &whole), std::pair(best_state.get(), &best)}) {
    const model::v41::SequenceChunk chunk{.state = state, .tokens = prompt, .logits_rows = kRows};
    ASSERT_TRUE(runtime_->model().Forward(context_, {&chunk, 1}, *head));
  }
  const int64_t vocab = runtime_->config().vocab_size;
  ASSERT_EQ(std::ssize(whole.logits), kRows * vocab);
  EXPECT_TRUE(whole.ids.empty());
  ASSERT_EQ(std::ssize(best.logits), kRows * 5);
  ASSERT_EQ(std::ssize(best.ids), kRows * 5);
  for (int64_t r = 0; r < kRows; ++r) {
    std::vector<float> row(whole.logits.begin() + r * vocab,
                           whole.logits.begin() + (r + 1) * vocab);
    for (int64_t k = 0; k < 5; ++k) {
      const auto max = std::max_element(row.begin(), row.end());
      EXPECT_EQ(best.ids[r * 5 + k], max - row.begin());
      EXPECT_EQ(best.logits[r * 5 + k], *max);
      *max = -std::numeric_limits<float>::infinity();
    }
  }
  for (const int64_t topk : {int64_t{-1}, kernels::kMaxTopLogits + 1}) {
    model::v41::HeadOutput head{.topk = topk};
    const model::v41::SequenceChunk chunk{
        .state = best_state.get(), .tokens = prompt, .logits_rows = 1};
    const auto status = runtime_->model().Forward(context_, {&chunk, 1}, head);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, fmt::format("topk {} of the head is outside [0, 64]", topk));
  }
}

TEST_F(CompletionTest, StopsAtMaxTokensAtAHookAndWhenCancelled) {
  const auto cut = Generate(Sum(), {.max_tokens = 2});
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->reason, FinishReason::kLength);
  EXPECT_EQ(cut->tokens.size(), 2u);

  int events = 0;
  const auto hooked = Generate(Sum(), {.max_tokens = 4000, .ignore_eos = true},
                               {.on_event = [&](const OutputEvent&) { return ++events < 3; }});
  ASSERT_TRUE(hooked);
  EXPECT_EQ(hooked->reason, FinishReason::kCancelled);
  EXPECT_EQ(events, 3);

  std::atomic<bool> cancel{true};
  const auto stopped =
      Generate(Sum(), {.max_tokens = 4000, .ignore_eos = true}, {.cancel = &cancel});
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->reason, FinishReason::kCancelled);
  EXPECT_LT(stopped->tokens.size(), 4000u);
}

TEST_F(CompletionTest, StopsWhenTheContextIsFull) {
  const std::vector<int32_t> prompt = Sum();
  EngineSettings settings;
  settings.memory.max_model_len = std::ssize(prompt) + 3;
  const auto full = Generate(prompt, {.max_tokens = 40}, {}, settings);
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->reason, FinishReason::kContext);
  EXPECT_EQ(full->tokens.size(), 3u);
  EXPECT_EQ(FinishReasonName(full->reason), "length");
}

TEST_F(CompletionTest, BadRequestsNameWhatIsWrong) {
  const auto error = [&](std::vector<int32_t> prompt, const SamplingParams& sampling) {
    const auto completion = Generate(std::move(prompt), sampling);
    return completion ? "no error" : completion.error().message;
  };
  EXPECT_THAT(error({}, {}), HasSubstr("prompt is empty"));
  EXPECT_THAT(error(std::vector<int32_t>(8192, 5), {.max_tokens = 1}), HasSubstr("8192 tokens"));
  EXPECT_THAT(error({0, 8192}, {.max_tokens = 1}), HasSubstr("token id 8192 at place 1"));
  EXPECT_THAT(error({-1}, {.max_tokens = 1}), HasSubstr("token id -1"));
  EXPECT_THAT(error({0}, {.max_tokens = 0}), HasSubstr("max_tokens 0"));
  EXPECT_THAT(error({0}, {.top_p = 0}), HasSubstr("top_p 0"));
}

TEST_F(CompletionTest, ACompletionSeparatesReasoningFromTheAnswer) {
  ChatRequest request;
  request.messages.push_back(ChatMessage::Text(Role::kUser, "Multiply 7 by 8."));
  request.options.thinking_mode = ThinkingMode::kThinking;
  auto prompt = ChatPrompt(request, runtime_->tokenizer());
  ASSERT_TRUE(prompt);
  const auto engine = Engine::Create(runtime_, {});
  ASSERT_TRUE(engine) << engine.error().message;
  std::string streamed;
  const auto completion =
      Complete(**engine, *prompt, {.max_tokens = 60}, {.on_event = [&](const OutputEvent& event) {
        streamed += event.text;
        return true;
      }});
  ASSERT_TRUE(completion) << completion.error().message;
  EXPECT_THAT(completion->output.reasoning, HasSubstr("7 x 8 = 56"));
  EXPECT_EQ(completion->output.content, "7 x 8 = 56.");
  EXPECT_EQ(completion->finish_reason(), "stop");
  EXPECT_EQ(streamed, completion->output.reasoning + completion->output.content);
}

TEST_F(CompletionTest, TextThatSpellsAControlTokenStaysText) {
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
