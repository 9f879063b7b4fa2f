// What a serving engine does with sequences: blocks and slots from pools, snapshots, rollback. None
// of it changes a byte of what a sequence computes.
#include "exec/prefill.h"
#include "tests/golden/support/drafts.h"
#include "tests/golden/support/nano.h"
#include "tests/golden/support/paged.h"
#include "tests/golden/support/toy.h"

namespace deepinfer::golden {
namespace {

using model::v41::CacheOptions;
using model::v41::ForwardContext;
using model::v41::SequenceChunk;
using model::v41::SequenceState;

constexpr int64_t kPromptTokens = 300, kSteps = 6;

// Tokens after the prompt are fed back whatever the logits say.
const std::vector<int32_t>& Tokens() {
  static const std::vector<int32_t> tokens = LongPrompt(kPromptTokens + kSteps, 20);
  return tokens;
}

// Runs Tokens() from the state's length to the end, prompt in chunks, then one by one: logits from
// the prompt's last token on, then a draft where the state can.
std::vector<float> Continue(SequenceState& state, int64_t chunk, int64_t decoder_start) {
  ForwardContext context(2);
  const std::span<const int32_t> tokens = Tokens();
  std::vector<float> all =
      RunChunks(Nano().model(), context,
                {.state = &state,
                 .tokens = tokens.subspan(state.length(), kPromptTokens - state.length()),
                 .decoder_start = decoder_start,
                 .logits_rows = 1},
                chunk);
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto row = RunForward(Nano().model(), context, state,
                                tokens.subspan(kPromptTokens + step, 1), decoder_start);
    all.insert(all.end(), row.begin(), row.end());
  }
  if (state.with_draft()) {
    const BlockDraft draft = DraftBlock(Nano().model(), context, state, 7);
    all.insert(all.end(), draft.logits.begin(), draft.logits.end());
  }
  return all;
}

class PagedModes : public testing::TestWithParam<PrefillMode> {
 protected:
  const int64_t start_ = DecoderStart({.mode = GetParam(), .keep_tokens = 140}, kPromptTokens);
};

TEST_P(PagedModes, BlocksAndSlotsOfAnySizeGiveTheBytesOfPrivateMemory) {
  const auto own = Nano().model().NewSequence(true);
  const auto want = Continue(*own, kPromptTokens, start_);
  struct Case {
    CacheOptions options;
    int64_t chunk;
  };
  for (const Case& c : {Case{{.block_tokens = 64, .with_draft = true, .max_rollback = 5}, 64},
                        Case{{.block_tokens = 6, .with_draft = true, .max_rollback = 0}, 97}}) {
    PagedMemory memory(Nano().config(), c.options);
    const auto table = memory.NewTable(kPromptTokens + kSteps);
    const auto state = memory.NewState();
    state->ViewBlocks(table);
    EXPECT_EQ(Continue(*state, c.chunk, start_), want)
        << "blocks of " << c.options.block_tokens << ", chunks of " << c.chunk;
  }
}

TEST_P(PagedModes, ARestoredSnapshotContinuesAsIfItHadNeverStopped) {
  PagedMemory memory(Nano().config(), {.block_tokens = 64, .with_draft = true, .max_rollback = 5});
  const auto own = Nano().model().NewSequence(true);
  const auto want = Continue(*own, kPromptTokens, start_);
  // Block boundaries before and behind the decoder's start, that start itself, and an open group.
  for (const int64_t boundary : {64, 160, 192, 257}) {
    ForwardContext context(2);
    const auto table = memory.NewTable(kPromptTokens + kSteps);
    const auto first = memory.NewState();
    first->ViewBlocks(table);
    RunChunks(Nano().model(), context,
              {.state = first.get(),
               .tokens = std::span(Tokens()).first(boundary),
               .decoder_start = start_},
              50);
    const std::vector<uint8_t> snapshot = memory.Snapshot(*first);
    // Whole blocks are shared, as a prefix cache does; an open group's block goes along.
    const auto shared = std::span(table).first((boundary + 63) / 64);
    const auto second_table = memory.NewTable(kPromptTokens + kSteps, shared);
    const auto second = memory.NewState();
    second->ViewBlocks(second_table);
    const Status status = second->RestoreSnapshot(snapshot);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(second->length(), boundary);
    EXPECT_EQ(Continue(*second, 77, start_), want) << "restored at " << boundary;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, PagedModes,
                         testing::Values(PrefillMode::kOff, PrefillMode::kCompact),
                         [](const auto& info) {
                           return info.param == PrefillMode::kOff ? "off" : "compact";
                         });

// A sequence that has drafts to verify: positions from `start` on, of which some are rejected.
class Speculation : public testing::TestWithParam<int64_t> {
 protected:
  static constexpr int64_t kMost = 5;
  static constexpr int64_t kTail = 8;  // tokens after the start that are compared

  Speculation() {
    state_ = memory_.NewState();
    state_->ViewBlocks(table_);
    RunChunks(model_, context_,
              {.state = state_.get(), .tokens = std::span(tokens_).first(GetParam())}, 128);
    snapshot_ = memory_.Snapshot(*state_);
  }

  // Forwards tokens one by one up to the end; logits, then a draft's.
  std::vector<float> OneByOne() {
    std::vector<float> all;
    while (state_->length() < std::ssize(tokens_)) {
      const auto row =
          RunForward(model_, context_, *state_, std::span(tokens_).subspan(state_->length(), 1));
      all.insert(all.end(), row.begin(), row.end());
    }
    const BlockDraft draft = DraftBlock(model_, context_, *state_, 7);
    all.insert(all.end(), draft.logits.begin(), draft.logits.end());
    return all;
  }
  // Forwards the next token, `accepted` right drafts and wrong ones, `drafts` in all.
  void Verify(int64_t drafts, int64_t accepted) {
    const auto right = std::span(tokens_).subspan(state_->length(), 1 + accepted);
    std::vector<int32_t> rows(right.begin(), right.end());
    for (int64_t i = accepted; i < drafts; ++i) rows.push_back(static_cast<int32_t>(4000 + i));
    RunForward(model_, context_, *state_, rows, 0, 0);
  }

  const model::v41::Model& model_ = Nano().model();
  PagedMemory memory_{Nano().config(),
                      {.block_tokens = 64, .with_draft = true, .max_rollback = kMost}};
  const std::vector<int32_t> tokens_ = LongPrompt(GetParam() + kTail, 21);
  const std::vector<uint8_t*> table_ = memory_.NewTable(GetParam() + kTail + kMost);
  ForwardContext context_{2};
  std::unique_ptr<SequenceState> state_;
  std::vector<uint8_t> snapshot_;
};

TEST_P(Speculation, RolledBackDraftsLeaveNoTrace) {
  const std::vector<float> want = OneByOne();
  const auto vocab = model_.config().vocab_size;
  for (int64_t drafts = 1; drafts <= kMost; ++drafts) {
    for (int64_t accepted = 0; accepted < drafts; ++accepted) {
      ASSERT_TRUE(state_->RestoreSnapshot(snapshot_));
      Verify(drafts, accepted);
      const Status status = state_->Rollback(GetParam() + 1 + accepted);
      ASSERT_TRUE(status) << status.error().message;
      const auto rest = std::span(want).subspan((1 + accepted) * vocab);
      const auto got = OneByOne();
      ASSERT_EQ(got.size(), rest.size());
      EXPECT_TRUE(std::equal(got.begin(), got.end(), rest.begin()))
          << accepted << " of " << drafts << " drafts at " << GetParam();
    }
  }
}

TEST_P(Speculation, SeveralRollbacksReachNoFurtherThanOne) {
  const std::vector<float> want = OneByOne();
  ASSERT_TRUE(state_->RestoreSnapshot(snapshot_));
  Verify(kMost, 0);
  const int64_t end = state_->length();
  ASSERT_TRUE(state_->Rollback(end - 2));
  ASSERT_TRUE(state_->Rollback(end - kMost));
  EXPECT_FALSE(state_->Rollback(end - kMost - 1));
  EXPECT_EQ(state_->length(), end - kMost);
  const auto rest = std::span(want).subspan(model_.config().vocab_size);
  const auto got = OneByOne();
  ASSERT_EQ(got.size(), rest.size());
  EXPECT_TRUE(std::equal(got.begin(), got.end(), rest.begin()));
}

// Both phases of a ratio-2 group, shorter and longer than the rings.
INSTANTIATE_TEST_SUITE_P(Lengths, Speculation, testing::Values(20, 21, 255, 256));

TEST(PagedState, AChunkBeyondTheBlocksIsRefused) {
  PagedMemory memory(Nano().config(), {.block_tokens = 64});
  ForwardContext context(1);
  const auto table = memory.NewTable(64);
  const auto state = memory.NewState();
  state->ViewBlocks(table);
  std::vector<float> logits;
  const SequenceChunk chunk{.state = state.get(), .tokens = std::span(Tokens()).first(65)};
  const Status status = Nano().model().Forward(context, {&chunk, 1}, logits);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("65 tokens"), std::string::npos);
  EXPECT_EQ(state->length(), 0);
}

TEST(PagedState, PrivateBlocksMustHoldARestoredSnapshot) {
  ForwardContext context(1);
  const auto from = Nano().model().NewSequence();
  RunForward(Nano().model(), context, *from, std::span(Tokens()).first(10), 0, 0);
  std::vector<uint8_t> snapshot(from->fixed_bytes());
  ASSERT_TRUE(from->SaveSnapshot(snapshot));
  const auto empty = Nano().model().NewSequence();
  EXPECT_FALSE(empty->RestoreSnapshot(snapshot));
  from->Clear();
  EXPECT_EQ(from->length(), 0);
  EXPECT_TRUE(from->RestoreSnapshot(snapshot));
  EXPECT_EQ(from->length(), 10);
}

}  // namespace
}  // namespace deepinfer::golden
