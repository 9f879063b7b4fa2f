// Promises about how work is cut: the same prompt gives the same bytes for any chunk size, any
// number of threads and anything else in the batch; decode equals prefill.
#include "exec/prefill.h"
#include "tests/golden/support/nano.h"
#include "tests/golden/support/toy.h"

namespace deepinfer::golden {
namespace {

using model::v41::ForwardContext;
using model::v41::SequenceChunk;
using model::v41::SequenceState;

// Logits of the last prompt token and of `steps` greedy tokens after it.
std::vector<float> Generate(std::span<const int32_t> prompt, int64_t chunk, int threads,
                            int64_t decoder_start, int steps) {
  ForwardContext context(threads);
  auto state = Nano().model().NewSequence();
  std::vector<float> row, all;
  for (int64_t at = 0; at < std::ssize(prompt); at += chunk) {
    const int64_t rows = std::min(chunk, std::ssize(prompt) - at);
    const bool last = at + rows == std::ssize(prompt);
    row = RunForward(Nano().model(), context, *state, prompt.subspan(at, rows), decoder_start,
                     last ? 1 : 0);
  }
  for (int step = 0; step < steps; ++step) {
    all.insert(all.end(), row.begin(), row.end());
    const auto next = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
    row = RunForward(Nano().model(), context, *state, {&next, 1});
  }
  return all;
}

class PrefillModes : public testing::TestWithParam<PrefillMode> {};

TEST_P(PrefillModes, ChunkSizesGiveTheSameBytes) {
  const std::vector<int32_t> prompt = LongPrompt(421, 1);
  const int64_t start = DecoderStart({.mode = GetParam(), .keep_tokens = 140}, 421);
  const auto whole = Generate(prompt, 421, 1, start, 3);
  for (const int64_t chunk : {1, 7, 64, 128}) {
    EXPECT_EQ(Generate(prompt, chunk, 2, start, 3), whole) << "chunks of " << chunk;
  }
}

TEST_P(PrefillModes, ThreadCountsGiveTheSameBytes) {
  const std::vector<int32_t> prompt = LongPrompt(200, 2);
  const int64_t start = DecoderStart({.mode = GetParam(), .keep_tokens = 140}, 200);
  const auto one = Generate(prompt, 128, 1, start, 2);
  for (const int threads : {2, 5}) {
    EXPECT_EQ(Generate(prompt, 128, threads, start, 2), one) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Both, PrefillModes,
                         testing::Values(PrefillMode::kOff, PrefillMode::kCompact),
                         [](const auto& info) {
                           return info.param == PrefillMode::kOff ? "off" : "compact";
                         });

TEST(Identity, RowsDoNotDependOnTheirBatch) {
  const auto& model = Nano().model();
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  ForwardContext context(2);
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::vector<float>> alone;
  for (int i = 0; i < 5; ++i) {
    prompts.push_back(LongPrompt(20 + 67 * i, 10 + i));
    auto state = model.NewSequence();
    alone.push_back(RunForward(model, context, *state, prompts.back(), 0, 2));
  }
  // All five in one forward, one of them with its first tokens already done.
  std::vector<std::unique_ptr<SequenceState>> states;
  std::vector<SequenceChunk> chunks;
  for (size_t i = 0; i < prompts.size(); ++i) {
    states.push_back(model.NewSequence());
    std::span<const int32_t> tokens = prompts[i];
    if (i == 2) {
      RunForward(model, context, *states[i], tokens.first(33), 0, 0);
      tokens = tokens.subspan(33);
    }
    chunks.push_back({.state = states[i].get(), .tokens = tokens, .logits_rows = 2});
  }
  std::vector<float> logits;
  ASSERT_TRUE(model.Forward(context, chunks, logits));
  for (size_t i = 0; i < alone.size(); ++i) {
    const auto rows = std::span(logits).subspan(2 * i * vocab, 2 * vocab);
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(), alone[i].begin())) << "sequence " << i;
  }
}

TEST(Identity, CompactModeDiffersFromExactOnlyByTruncatedDecoderWindows) {
  // Up to the tail the modes share every cache: a prompt inside the tail is bit-equal.
  const std::vector<int32_t> prompt = LongPrompt(140, 3);
  const int64_t start = DecoderStart({.mode = PrefillMode::kCompact, .keep_tokens = 140}, 140);
  EXPECT_EQ(start, 0);
  // Longer prompts really skip the decoder: the bytes change, a little.
  const std::vector<int32_t> longer = LongPrompt(400, 4);
  const auto vocab = static_cast<size_t>(Nano().config().vocab_size);
  const auto exact = Generate(longer, 400, 2, 0, 1);
  const auto compact = Generate(longer, 400, 2, 260, 1);
  const double error = CompareRows(compact, exact, vocab).max;
  EXPECT_GT(error, 0.0);
  EXPECT_LT(error, 0.2);
}

TEST(Identity, LogitsOfSkippedRowsAreRefused) {
  ForwardContext context(1);
  auto state = Nano().model().NewSequence();
  const std::vector<int32_t> prompt = LongPrompt(50, 5);
  std::vector<float> logits;
  const SequenceChunk chunk{
      .state = state.get(), .tokens = prompt, .decoder_start = 40, .logits_rows = 20};
  const Status status = Nano().model().Forward(context, {&chunk, 1}, logits);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("30"), std::string::npos) << status.error().message;
  EXPECT_EQ(state->length(), 0);
}

}  // namespace
}  // namespace deepinfer::golden
