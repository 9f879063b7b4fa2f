// Promises of drafting: what a sequence drafts depends on nothing but its state and its sampling,
// and verifying drafts in one forward gives the rows that decoding one by one does.
#include "exec/prefill.h"
#include "sampling/acceptance.h"
#include "sampling/sampler.h"
#include "tests/golden/support/drafts.h"
#include "tests/golden/support/nano.h"
#include "tests/golden/support/paged.h"
#include "tests/golden/support/toy.h"

namespace deepinfer::golden {
namespace {

using model::v41::DraftDraw;
using model::v41::DraftInput;
using model::v41::DraftOutput;
using model::v41::ForwardContext;
using model::v41::SequenceChunk;
using model::v41::SequenceState;

const model::v41::Model& NanoModel() { return Nano().model(); }
int64_t Block() { return Nano().config().draft_block_size; }
int64_t Window() { return Nano().config().sliding_window; }

std::unique_ptr<SequenceState> Prefilled(ForwardContext& context, int64_t tokens, int seed) {
  auto state = NanoModel().NewSequence(true);
  RunForward(NanoModel(), context, *state, LongPrompt(tokens, seed), 0, 0);
  return state;
}

// Sequences of several lengths, shorter and longer than the window, on both phases of a group, half
// of them in pools.
class DraftBatch : public testing::Test {
 protected:
  DraftBatch() {
    const std::vector<int64_t> lengths = {127, 20, 129, 128, 1, 201};
    for (size_t i = 0; i < 36; ++i) {  // more than logits are held of at once
      const int64_t length = i < lengths.size() ? lengths[i] : 1 + static_cast<int64_t>(i % 4);
      const int seed = static_cast<int>(40 + i);
      if (i % 2 == 0) {
        states_.push_back(Prefilled(context_, length, seed));
      } else {
        tables_.push_back(memory_.NewTable(length));
        states_.push_back(memory_.NewState());
        states_.back()->ViewBlocks(tables_.back());
        RunForward(NanoModel(), context_, *states_.back(), LongPrompt(length, seed), 0, 0);
      }
      inputs_.push_back({.state = states_.back().get(),
                         .next = static_cast<int32_t>(300 + i),
                         .drafts = 1 + static_cast<int64_t>(i * 3 % 5)});
    }
  }

  PagedMemory memory_{Nano().config(), {.block_tokens = 64, .with_draft = true, .max_rollback = 5}};
  ForwardContext context_{2};
  std::vector<std::vector<uint8_t*>> tables_;
  std::vector<std::unique_ptr<SequenceState>> states_;
  std::vector<DraftInput> inputs_;
};

TEST_F(DraftBatch, DraftsDoNotDependOnTheBatchOrTheThreads) {
  const std::vector<BlockDraft> batch = DraftBlocks(NanoModel(), context_, inputs_);
  for (const int threads : {1, 3}) {
    ForwardContext other(threads);
    EXPECT_EQ(DraftBlocks(NanoModel(), other, inputs_), batch) << threads << " threads";
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    EXPECT_EQ(DraftBlocks(NanoModel(), context_, {inputs_[i]})[0], batch[i]) << "sequence " << i;
  }
}

TEST_F(DraftBatch, FewerDraftsAreTheFirstOfTheWholeBlock) {
  std::vector<DraftInput> whole = inputs_;
  for (DraftInput& input : whole) input.drafts = Block();
  const auto most = DraftBlocks(NanoModel(), context_, whole);
  const auto fewer = DraftBlocks(NanoModel(), context_, inputs_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    ASSERT_EQ(std::ssize(fewer[i].tokens), inputs_[i].drafts);
    EXPECT_TRUE(std::equal(fewer[i].tokens.begin(), fewer[i].tokens.end(), most[i].tokens.begin()));
    EXPECT_TRUE(std::equal(fewer[i].confidence.begin(), fewer[i].confidence.end(),
                           most[i].confidence.begin()));
  }
}

TEST_F(DraftBatch, ASamplerEndsOneSequencesDraftsAndNoOthers) {
  for (DraftInput& input : inputs_) input.drafts = Block();
  const auto want = DraftBlocks(NanoModel(), context_, inputs_);
  for (const int32_t none : {-1, 1 << 30}) {
    DraftOutput out;
    ASSERT_TRUE(NanoModel().Draft(
        context_, inputs_,
        [&](const DraftDraw& draw) {
          return draw.step == draw.sequence % 7 ? none : model::v41::GreedyDraft(draw);
        },
        out));
    for (int64_t i = 0; i < std::ssize(inputs_); ++i) {
      const auto count = std::min(Block(), i % 7);
      ASSERT_EQ(out.counts[i], count);
      for (int64_t k = 0; k < count; ++k) {
        EXPECT_EQ(out.tokens[i * Block() + k], want[i].tokens[k]);
        EXPECT_EQ(out.confidence[i * Block() + k], want[i].confidence[k]);
      }
    }
  }
}

// The same noise as the target's own draw at that position: a drafter with the target's logits
// would always be accepted.
TEST_F(DraftBatch, CoupledDraftsDrawAtTheTargetsPosition) {
  std::vector<Sampler> samplers(static_cast<size_t>(context_.pool().size()));
  const auto params = [](int64_t i) {
    return SamplingParams{.temperature = 1.2,
                          .top_p = i % 2 == 0 ? 1.0 : 0.9,
                          .top_k = i % 3 == 0 ? 20 : 0,
                          .seq_seed = static_cast<uint64_t>(i)};
  };
  DraftOutput out;
  ASSERT_TRUE(NanoModel().Draft(
      context_, inputs_,
      [&](const DraftDraw& draw) {
        return samplers[draw.worker]
            .Sample(draw.logits, params(draw.sequence), draw.position)
            .value_or(-1);
      },
      out));
  size_t not_best = 0;
  Sampler sampler;
  for (int64_t i = 0; i < std::ssize(inputs_); ++i) {
    ASSERT_EQ(out.counts[i], inputs_[i].drafts);
    // Alone, with the tokens forced: the logits of each step, drawn from at its position.
    int64_t step = 0;
    DraftOutput again;
    ASSERT_TRUE(NanoModel().Draft(
        context_, {&inputs_[i], 1},
        [&](const DraftDraw& draw) {
          EXPECT_EQ(draw.position, states_[i]->length() + 1 + step);
          const int32_t token = out.tokens[i * Block() + step];
          EXPECT_EQ(sampler.Sample(draw.logits, params(i), states_[i]->length() + 1 + step).value(),
                    token);
          not_best += token != model::v41::GreedyDraft(draw);
          ++step;
          return token;
        },
        again));
    EXPECT_EQ(step, inputs_[i].drafts);
  }
  EXPECT_GT(not_best, 0u) << "the temperature changed nothing";
}

TEST_F(DraftBatch, InputsThatCannotDraftAreRefusedWhole) {
  const auto plain = NanoModel().NewSequence();
  RunForward(NanoModel(), context_, *plain, LongPrompt(9, 1), 0, 0);
  const auto empty = NanoModel().NewSequence(true);
  // The decoder half started 100 tokens before the end: less than a window.
  const auto late = NanoModel().NewSequence(true);
  RunForward(NanoModel(), context_, *late, LongPrompt(300, 2), 200, 0);
  const auto vocab = static_cast<int32_t>(Nano().config().vocab_size);
  const std::vector<std::pair<DraftInput, std::string>> cases = {
      {{plain.get(), 5, 1}, "without draft rings"},
      {{empty.get(), 5, 1}, "at least one token"},
      {{late.get(), 5, 1}, "start at position 200"},
      {{states_[0].get(), vocab, 1}, "token id"},
      {{states_[0].get(), -1, 1}, "token id"},
      {{states_[0].get(), 5, 0}, "0 drafts are outside [1, 5]"},
      {{states_[0].get(), 5, 6}, "6 drafts are outside [1, 5]"}};
  for (const auto& [bad, words] : cases) {
    const std::vector<DraftInput> inputs = {inputs_[1], bad};
    DraftOutput out;
    const Status status = NanoModel().Draft(context_, inputs, model::v41::GreedyDraft, out);
    ASSERT_FALSE(status) << words;
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
    EXPECT_TRUE(out.tokens.empty());
  }
}

// The rings of a step with many sequences are filled as one batch, some of them without rings.
TEST(DraftRings, DecodingTogetherFillsThemAsDecodingAlone) {
  ForwardContext context(2);
  std::vector<BlockDraft> alone;
  std::vector<std::unique_ptr<SequenceState>> states;
  std::vector<SequenceChunk> chunks;
  std::vector<std::vector<int32_t>> tokens;
  for (int i = 0; i < 6; ++i) {
    tokens.push_back(LongPrompt(30 + 61 * i, 80 + i));
    const auto state = NanoModel().NewSequence(true);
    RunForward(NanoModel(), context, *state, tokens.back(), 0, 0);
    alone.push_back(DraftBlock(NanoModel(), context, *state, 9));
    states.push_back(NanoModel().NewSequence(i != 3));
    const std::span<const int32_t> all = tokens.back();
    const int64_t first = std::ssize(all) - 1 - i;  // 1 to 6 rows are left
    RunForward(NanoModel(), context, *states.back(), all.first(first), 0, 0);
    chunks.push_back({.state = states.back().get(), .tokens = all.subspan(first)});
  }
  std::vector<float> logits;
  ASSERT_TRUE(NanoModel().Forward(context, chunks, logits));
  std::vector<DraftInput> inputs;
  for (size_t i = 0; i < states.size(); ++i) {
    if (i != 3) inputs.push_back({.state = states[i].get(), .next = 9});
  }
  alone.erase(alone.begin() + 3);
  EXPECT_EQ(DraftBlocks(NanoModel(), context, inputs), alone);
}

class DraftModes : public testing::TestWithParam<PrefillMode> {
 protected:
  int64_t Start(int64_t prompt) const {
    return DecoderStart({.mode = GetParam(), .keep_tokens = Window() + 12}, prompt);
  }
};

// After a prefix hit the replayed rows rebuild the rings: with nothing cut off they are those of a
// cold run, else a draft is possible at once and does not depend on the chunks.
TEST_P(DraftModes, APrefixReplayRebuildsTheRings) {
  constexpr int64_t kTokens = 300, kHit = 256;
  const std::vector<int32_t> tokens = LongPrompt(kTokens, 60);
  const std::span<const int32_t> all = tokens;
  PagedMemory memory(Nano().config(), {.block_tokens = 64, .with_draft = true, .max_rollback = 5});
  ForwardContext context(2);
  const auto cold_table = memory.NewTable(kTokens);
  const auto cold = memory.NewState();
  cold->ViewBlocks(cold_table);
  RunChunks(NanoModel(), context,
            {.state = cold.get(), .tokens = all, .decoder_start = Start(kTokens)}, 77);
  const BlockDraft want = DraftBlock(NanoModel(), context, *cold, 11);
  const auto replayed = [&](int64_t start, int64_t chunk) {
    const auto table = memory.NewTable(kTokens, std::span(cold_table).first(kHit / 64));
    const auto state = memory.NewState();
    state->ViewBlocks(table);
    const int64_t lookback = std::min<int64_t>(start, 3);
    RunChunks(NanoModel(), context,
              {.state = state.get(),
               .tokens = all.subspan(start),
               .decoder_start = Start(kTokens),
               .replay_start = start,
               .write_floor = kHit,
               .lookback = all.subspan(start - lookback, lookback)},
              chunk);
    return DraftBlock(NanoModel(), context, *state, 11);
  };
  EXPECT_EQ(replayed(0, 100), want);
  const BlockDraft hit = replayed(kHit - Window(), kTokens);
  EXPECT_EQ(std::ssize(hit.tokens), Block());
  EXPECT_EQ(replayed(kHit - Window(), 33), hit);
}

// Verification: a step's rows of several sequences, each a confirmed token and its drafts, are the
// rows that decoding token by token gives.
TEST_P(DraftModes, VerifyingSeveralSequencesAtOnceGivesTheRowsOfDecoding) {
  ForwardContext context(2);
  const auto vocab = Nano().config().vocab_size;
  std::vector<std::vector<int32_t>> tokens;
  std::vector<std::vector<float>> want;
  std::vector<std::unique_ptr<SequenceState>> states;
  std::vector<SequenceChunk> chunks;
  for (int i = 0; i < 6; ++i) {
    const int64_t prompt = 160 + i * 3, rows = 1 + i % (Block() + 1);
    tokens.push_back(LongPrompt(prompt + rows, 90 + i));
    const std::span<const int32_t> all = tokens.back();
    const auto prefill = [&](SequenceState& state) {
      RunForward(NanoModel(), context, state, all.first(prompt), Start(prompt), 0);
    };
    const auto single = NanoModel().NewSequence(true);
    prefill(*single);
    for (int64_t r = 0; r < rows; ++r) {
      want.push_back(
          RunForward(NanoModel(), context, *single, all.subspan(prompt + r, 1), Start(prompt)));
    }
    states.push_back(NanoModel().NewSequence(true));
    prefill(*states.back());
    chunks.push_back({.state = states.back().get(),
                      .tokens = all.subspan(prompt),
                      .decoder_start = Start(prompt),
                      .logits_rows = rows});
  }
  std::vector<float> logits;
  ASSERT_TRUE(NanoModel().Forward(context, chunks, logits));
  ASSERT_EQ(std::ssize(logits), std::ssize(want) * vocab);
  for (size_t row = 0; row < want.size(); ++row) {
    EXPECT_TRUE(std::equal(want[row].begin(), want[row].end(), logits.begin() + row * vocab))
        << "row " << row;
  }
}

// Greedy decoding by drafting and verification, right after either prefill: the tokens and every
// row are those of plain decoding, and the drafts are worth something.
TEST_P(DraftModes, GreedyDecodingWithDraftsGivesTheBytesOfPlainDecoding) {
  constexpr int64_t kPrompt = 161, kTokens = 24;
  const auto vocab = Nano().config().vocab_size;
  const std::vector<int32_t> prompt = LongPrompt(kPrompt, 61);
  const auto best = [&](std::span<const float> row) {
    return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
  };
  ForwardContext context(2);
  const auto plain = NanoModel().NewSequence();
  std::vector<float> row = RunForward(NanoModel(), context, *plain, prompt, Start(kPrompt), 1);
  const int32_t first = best(row);
  std::vector<std::vector<float>> rows;
  std::vector<int32_t> want = {first};
  while (std::ssize(want) < kTokens + Block() + 1) {
    rows.push_back(RunForward(NanoModel(), context, *plain, {&want.back(), 1}, Start(kPrompt)));
    want.push_back(best(rows.back()));
  }
  for (int64_t depth = 1; depth <= Block(); ++depth) {
    const auto state = NanoModel().NewSequence(true);
    RunForward(NanoModel(), context, *state, prompt, Start(kPrompt), 0);
    std::vector<int32_t> got = {first};
    int64_t steps = 0;
    while (std::ssize(got) < kTokens) {
      const DraftInput input{state.get(), got.back(), depth};
      DraftOutput drafts;
      ASSERT_TRUE(NanoModel().Draft(context, {&input, 1}, model::v41::GreedyDraft, drafts));
      std::vector<int32_t> step = {got.back()};
      step.insert(step.end(), drafts.tokens.begin(), drafts.tokens.begin() + depth);
      const int64_t length = state->length();
      const auto logits = RunForward(NanoModel(), context, *state, step, Start(kPrompt));
      std::vector<int32_t> targets;
      for (int64_t r = 0; r <= depth; ++r) {
        targets.push_back(best(std::span(logits).subspan(r * vocab, vocab)));
      }
      const int64_t accepted = CoupledAccepted(std::span(step).subspan(1), targets);
      for (int64_t r = 0; r <= accepted; ++r) {
        const auto& plain_row = rows[got.size() - 1];
        EXPECT_TRUE(std::equal(plain_row.begin(), plain_row.end(), logits.begin() + r * vocab));
        got.push_back(targets[r]);
      }
      ASSERT_TRUE(state->Rollback(length + 1 + accepted));
      ++steps;
    }
    EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin())) << "depth " << depth;
    EXPECT_LT(steps, kTokens - 1) << "no draft was accepted at depth " << depth;
  }
}

// Whatever a verification wrote beyond what was accepted, nothing of it is left after a rollback:
// rows, drafts and later rollbacks go on as in a sequence that never drafted.
TEST_P(DraftModes, RollbackAtEveryPhaseAndLengthLeavesNoTrace) {
  constexpr int64_t kPrompt = 164, kTail = 7;
  const auto vocab = Nano().config().vocab_size;
  const std::vector<int32_t> tokens = LongPrompt(kPrompt + kTail + 8, 62);
  const std::span<const int32_t> all = tokens;
  ForwardContext context(2);
  PagedMemory memory(Nano().config(),
                     {.block_tokens = 64, .with_draft = true, .max_rollback = Block()});
  for (const int64_t length : {kPrompt, kPrompt + 1}) {
    const auto table = memory.NewTable(std::ssize(all) + 8);
    const auto state = memory.NewState();
    state->ViewBlocks(table);
    RunChunks(NanoModel(), context,
              {.state = state.get(), .tokens = all.first(length), .decoder_start = Start(kPrompt)},
              100);
    const auto snapshot = memory.Snapshot(*state);
    std::vector<float> want;
    std::vector<BlockDraft> drafts;
    for (int64_t i = 0; i < kTail; ++i) {
      drafts.push_back(DraftBlock(NanoModel(), context, *state, all[length + i]));
      const auto row =
          RunForward(NanoModel(), context, *state, all.subspan(length + i, 1), Start(kPrompt));
      want.insert(want.end(), row.begin(), row.end());
    }
    for (int64_t proposed = 0; proposed <= Block(); ++proposed) {
      for (int64_t accepted = 0; accepted <= proposed; ++accepted) {
        ASSERT_TRUE(state->RestoreSnapshot(snapshot));
        std::vector<int32_t> step(all.begin() + length, all.begin() + length + 1 + accepted);
        for (int64_t k = accepted; k < proposed; ++k) {
          step.push_back(static_cast<int32_t>(4000 + k));
        }
        RunForward(NanoModel(), context, *state, step, Start(kPrompt), 0);
        ASSERT_TRUE(state->Rollback(length + 1 + accepted));
        for (int64_t i = 1 + accepted; i < kTail; ++i) {
          ASSERT_EQ(DraftBlock(NanoModel(), context, *state, all[length + i]), drafts[i])
              << accepted << " of " << proposed << " at " << length;
          const auto row =
              RunForward(NanoModel(), context, *state, all.subspan(length + i, 1), Start(kPrompt));
          ASSERT_TRUE(std::equal(row.begin(), row.end(), want.begin() + i * vocab))
              << accepted << " of " << proposed << " at " << length;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, DraftModes,
                         testing::Values(PrefillMode::kOff, PrefillMode::kCompact),
                         [](const auto& info) {
                           return info.param == PrefillMode::kOff ? "off" : "compact";
                         });

}  // namespace
}  // namespace deepinfer::golden
