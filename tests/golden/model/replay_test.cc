// Encoder replay after a prefix hit: global KV is shared, windows are computed again from a window
// before the hit's end (spec model-v41 section 5.3).
#include "exec/prefill.h"
#include "tests/golden/support/nano.h"
#include "tests/golden/support/paged.h"
#include "tests/golden/support/toy.h"

namespace deepinfer::golden {
namespace {

using model::v41::ForwardContext;
using model::v41::KvSourceLayout;
using model::v41::SequenceChunk;
using model::v41::SequenceState;

constexpr int64_t kTokens = 420, kHit = 256, kBlock = 64, kWanted = 20;

class Replay : public testing::TestWithParam<PrefillMode> {
 protected:
  // A sequence that computed everything, whose first kHit tokens are cached.
  Replay() {
    cold_table_ = memory_.NewTable(kTokens);
    const auto state = memory_.NewState();
    state->ViewBlocks(cold_table_);
    cold_ = RunChunks(model_, context_, Chunk(*state, 0), 128);
    for (const uint8_t* block : Shared()) cached_.push_back(memory_.Bytes(block));
  }
  std::span<uint8_t* const> Shared() const { return std::span(cold_table_).first(kHit / kBlock); }

  // Tokens from replay_start (or, in a state that has begun, from its length) to the end.
  SequenceChunk Chunk(SequenceState& state, int64_t replay_start) const {
    const int64_t lookback = std::min<int64_t>(replay_start, 3);
    return {.state = &state,
            .tokens = std::span(tokens_).subspan(replay_start),
            .decoder_start = start_,
            .logits_rows = kWanted,
            .replay_start = replay_start,
            .lookback = std::span(tokens_).subspan(replay_start - lookback, lookback)};
  }
  SequenceChunk Hit(SequenceState& state, int64_t replay_start) const {
    SequenceChunk chunk = Chunk(state, replay_start);
    chunk.write_floor = kHit;
    return chunk;
  }
  std::vector<float> RunHit(int64_t replay_start, int64_t chunk) {
    const auto table = memory_.NewTable(kTokens, Shared());
    const auto state = memory_.NewState();
    state->ViewBlocks(table);
    const auto logits = RunChunks(model_, context_, Hit(*state, replay_start), chunk);
    EXPECT_EQ(state->length(), kTokens);
    EXPECT_EQ(state->draft_first_valid(), std::max(start_, replay_start));
    return logits;
  }
  void ExpectSharedBlocksUntouched() const {
    for (size_t i = 0; i < cached_.size(); ++i) {
      EXPECT_EQ(memory_.Bytes(cold_table_[i]), cached_[i]) << "block " << i;
    }
  }

  const model::v41::Model& model_ = Nano().model();
  const int64_t window_ = model_.config().sliding_window;
  const int64_t start_ = DecoderStart({.mode = GetParam(), .keep_tokens = 140}, kTokens);
  const std::vector<int32_t> tokens_ = LongPrompt(kTokens, 30);
  PagedMemory memory_{model_.config(),
                      {.block_tokens = kBlock, .with_draft = true, .max_rollback = 5}};
  ForwardContext context_{2};
  std::vector<uint8_t*> cold_table_;
  std::vector<float> cold_;
  std::vector<std::vector<uint8_t>> cached_;
};

TEST_P(Replay, OutputsStayCloseToAColdRunAndSharedBlocksAsTheyAre) {
  const auto hit = RunHit(kHit - window_, kTokens);
  const auto vocab = static_cast<size_t>(model_.config().vocab_size);
  const RowAgreement agreement = CompareRows(hit, cold_, vocab);
  std::printf(
      "[ replay   ] relative distance of the logits: median %.4f, largest %.4f; best token "
      "equal in %.0f %%\n",
      agreement.median, agreement.max, 100 * agreement.top1);
  EXPECT_GT(agreement.max, 0.0);
  EXPECT_LT(agreement.median, 0.08);
  EXPECT_LT(agreement.max, 0.2);
  // Going on at the hit's end without any window is worse.
  const RowAgreement without = CompareRows(RunHit(kHit, kTokens), cold_, vocab);
  std::printf("[ replay   ] without replay: median %.4f, largest %.4f\n", without.median,
              without.max);
  EXPECT_LT(agreement.median, without.median);
  ExpectSharedBlocksUntouched();
}

TEST_P(Replay, ChunkSizesGiveTheSameBytes) {
  const auto whole = RunHit(kHit - window_, kTokens);
  for (const int64_t chunk : {33, 128}) {
    EXPECT_EQ(RunHit(kHit - window_, chunk), whole) << "chunks of " << chunk;
  }
  ExpectSharedBlocksUntouched();
}

// With nothing cut off, what replay computes is what a cold run does.
TEST_P(Replay, FromTheStartItIsTheColdRun) {
  EXPECT_EQ(RunHit(0, 100), cold_);
  ExpectSharedBlocksUntouched();
}

TEST_P(Replay, SeveralSequencesReplayInOneForward) {
  const std::vector<int64_t> starts = {kHit - window_, kHit - window_ + 1, kHit - 30};
  std::vector<std::vector<float>> alone;
  for (const int64_t start : starts) alone.push_back(RunHit(start, kTokens));
  std::vector<std::vector<uint8_t*>> tables;
  std::vector<std::unique_ptr<SequenceState>> states;
  std::vector<SequenceChunk> chunks;
  for (const int64_t start : starts) {
    tables.push_back(memory_.NewTable(kTokens, Shared()));
    states.push_back(memory_.NewState());
    states.back()->ViewBlocks(tables.back());
    chunks.push_back(Hit(*states.back(), start));
  }
  // And one that decodes.
  const auto other = model_.NewSequence();
  RunForward(model_, context_, *other, std::span(tokens_).first(9), 0, 0);
  chunks.push_back({.state = other.get(), .tokens = std::span(tokens_).subspan(9, 1)});
  std::vector<float> logits;
  const Status status = model_.Forward(context_, chunks, logits);
  ASSERT_TRUE(status) << status.error().message;
  auto at = logits.begin();
  for (size_t i = 0; i < starts.size(); ++i) {
    EXPECT_TRUE(std::equal(alone[i].begin(), alone[i].end(), at)) << "from " << starts[i];
    at += std::ssize(alone[i]);
  }
  ExpectSharedBlocksUntouched();
}

INSTANTIATE_TEST_SUITE_P(Both, Replay, testing::Values(PrefillMode::kOff, PrefillMode::kCompact),
                         [](const auto& info) {
                           return info.param == PrefillMode::kOff ? "off" : "compact";
                         });

// Entries are written or not by their last token, so that a pair across the floor is written.
TEST(WriteFloor, EntriesThatEndBelowItAreNeverWritten) {
  const auto& model = Nano().model();
  const std::vector<int32_t> tokens = LongPrompt(120, 31);
  for (const auto& [start, floor] :
       {std::pair<int64_t, int64_t>{0, 50}, {17, 50}, {16, 51}, {50, 50}, {49, 51}}) {
    // Records of zeros stand for the cached ones.
    PagedMemory memory(model.config(), {.block_tokens = 64}, 0);
    ForwardContext context(2);
    const auto table = memory.NewTable(120);
    const auto state = memory.NewState();
    state->ViewBlocks(table);
    RunChunks(model, context,
              {.state = state.get(),
               .tokens = std::span(tokens).subspan(start),
               .replay_start = start,
               .write_floor = floor,
               .lookback = std::span(tokens).subspan(std::max<int64_t>(0, start - 3),
                                                     std::min<int64_t>(3, start))},
              40);
    for (const KvSourceLayout& source : memory.layout->sources) {
      for (int64_t j = 0; j < 120 / source.ratio; ++j) {
        const uint8_t* entry = table[j / source.entries_per_block] + source.kv_offset +
                               j % source.entries_per_block * memory.layout->kv_bytes;
        const uint8_t* key = table[j / source.entries_per_block] + source.index_offset +
                             j % source.entries_per_block * memory.layout->index_bytes;
        const auto untouched = [](const uint8_t* record, int64_t bytes) {
          return std::all_of(record, record + bytes, [](uint8_t b) { return b == 0; });
        };
        const bool kept = (j + 1) * source.ratio - 1 < floor;
        ASSERT_EQ(untouched(entry, memory.layout->kv_bytes), kept)
            << "entry " << j << " of ratio " << source.ratio << ", floor " << floor;
        ASSERT_EQ(untouched(key, memory.layout->index_bytes), kept)
            << "key " << j << " of ratio " << source.ratio << ", floor " << floor;
      }
    }
  }
}

TEST(WriteFloor, ReplaysThatDoNotFitAreRefused) {
  const auto& model = Nano().model();
  PagedMemory memory(model.config(), {.block_tokens = 64});
  ForwardContext context(1);
  const std::vector<int32_t> tokens = LongPrompt(64, 32);
  const std::span<const int32_t> all = tokens;
  const auto table = memory.NewTable(64);
  const auto state = memory.NewState();
  state->ViewBlocks(table);
  const std::vector<int32_t> outside = {1, 2, 1 << 30};
  const auto chunk = [&](int64_t start, int64_t floor, std::span<const int32_t> lookback) {
    return SequenceChunk{.state = state.get(),
                         .tokens = all.first(4),
                         .replay_start = start,
                         .write_floor = floor,
                         .lookback = lookback};
  };
  const std::vector<std::pair<SequenceChunk, std::string>> cases = {
      {chunk(-2, 4, {}), "replay_start -2"},
      {chunk(8, 4, all.first(3)), "write_floor 4"},
      {chunk(0, 66, {}), "<= 64"},
      {chunk(7, 7, all.first(3)), "inside a ratio-2 group"},
      {chunk(8, 16, all.first(2)), "lookback has 2 tokens"},
      {chunk(2, 16, all.first(3)), "needs the 2 before it"},
      {chunk(8, 16, outside), "position 7"}};
  std::vector<float> logits;
  for (const auto& [bad, words] : cases) {
    const Status status = model.Forward(context, {&bad, 1}, logits);
    ASSERT_FALSE(status) << words;
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
    EXPECT_EQ(state->length(), 0);
  }
  RunForward(model, context, *state, all.first(4), 0, 0);
  const SequenceChunk late = chunk(8, 16, all.first(3));
  const Status status = model.Forward(context, {&late, 1}, logits);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("length 4"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace deepinfer::golden
