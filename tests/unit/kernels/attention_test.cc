// Core attention against double precision and, bit for bit, against the letter of the spec; which
// record each slot of a list reads.
#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

constexpr int64_t kDim = 64, kHeads = 6, kRing = 16;
constexpr int64_t kWindowBytes = kDim + kDim / 32, kKvBytes = kDim / 2 + kDim / 16;

// A sequence whose window records up to chunk_start stand in the ring and later ones in the chunk;
// compressed entries in blocks of 8.
class AttentionTest : public ::testing::Test {
 protected:
  static constexpr int64_t kPositions = 200, kChunkStart = 150, kEntries = 100, kPerBlock = 8;

  void SetUp() override {
    for (int64_t p = 0; p < kPositions; ++p) AddWindowRecord(p);
    for (int64_t e = 0; e < kEntries; ++e) AddEntry(e);
    for (const auto& block : blocks_) block_pointers_.push_back(block.data());
    entries_ = {block_pointers_.data(), kPerBlock, kKvBytes};
    window_ = {ring_.data(), kRing, chunk_.data(), kChunkStart, kWindowBytes};
  }

  void AddWindowRecord(int64_t position) {
    const std::vector<bf16> x = random_.Bf16s(kDim);
    uint8_t* out = position < kChunkStart ? ring_.data() + position % kRing * kWindowBytes
                                          : chunk_.data() + (position - kChunkStart) * kWindowBytes;
    Kernels().pack_window(pool_, x.data(), 1, kDim, &out);
    std::vector<float> key(kDim);
    for (int64_t d = 0; d < kDim; ++d) {
      key[d] = E4M3ToFloat(out[d]) * E8M0ToFloat(out[kDim + d / 32]);
    }
    window_keys_.push_back(key);
  }

  void AddEntry(int64_t entry) {
    if (entry % kPerBlock == 0) blocks_.emplace_back(kPerBlock * kKvBytes);
    const std::vector<bf16> x = random_.Bf16s(kDim, entry == 77 ? 8 : 1);  // a late large maximum
    uint8_t* out = blocks_.back().data() + entry % kPerBlock * kKvBytes;
    Kernels().pack_kv(pool_, x.data(), 1, kDim, &out);
    std::vector<float> key(kDim);
    for (int64_t d = 0; d < kDim; ++d) {
      key[d] = E2M1ToFloat(out[d / 2] >> (d % 2 * 4) & 15) * E4M3ToFloat(out[kDim / 2 + d / 16]);
    }
    entry_keys_.push_back(key);
  }

  KeyBlocks BlocksOf(const AttentionQuery& list) const {
    KeyBlocks blocks;
    for (int64_t slot = 0; slot < list.window_slots + list.selected_count; ++slot) {
      if (slot % kAttentionBlock == 0) blocks.emplace_back();
      const int64_t position = list.window_begin + slot;
      if (slot >= list.window_slots) {
        blocks.back().push_back(entry_keys_[list.selected[slot - list.window_slots]]);
      } else if (position < list.window_end) {
        blocks.back().push_back(window_keys_[position]);
      }
    }
    return blocks;
  }

  std::vector<bf16> Attend(const std::vector<AttentionQuery>& lists, const std::vector<bf16>& q) {
    std::vector<bf16> out(q.size());
    AttentionArgs args;
    args.queries = std::ssize(lists);
    args.heads = kHeads;
    args.dim = kDim;
    args.q = q.data();
    args.sink = sink_.data();
    args.scale = 0.125f;
    args.lists = lists.data();
    args.out = out.data();
    Kernels().attention(pool_, args);
    return out;
  }

  // The softmax with a sink, without blocks or rounding, and how far roundings may move it.
  void CheckAgainstDouble(const AttentionQuery& list, const float* q, float sink,
                          const bf16* got) const {
    std::vector<double> acc(kDim), magnitude(kDim);
    double total = std::exp(static_cast<double>(sink));
    for (const auto& keys : BlocksOf(list)) {
      for (const auto& key : keys) {
        double z = 0;
        for (int64_t d = 0; d < kDim; ++d) z += static_cast<double>(q[d]) * key[d];
        const double p = std::exp(z * 0.125);
        total += p;
        for (int64_t d = 0; d < kDim; ++d) {
          acc[d] += p * key[d];
          magnitude[d] += p * std::fabs(key[d]);
        }
      }
    }
    for (int64_t d = 0; d < kDim; ++d) {
      // Probabilities are rounded to bf16 for the product: 2^-8 each. Their fp32 error is that of
      // z (a sum of 64 terms with |z| < 40) through exp, well below 2^-14.
      const double error = (0x1p-8 + 0x1p-14) * magnitude[d] / total;
      ASSERT_NEAR(ToFloat(got[d]), acc[d] / total, Bf16Tolerance(acc[d] / total, error)) << d;
    }
  }

  void Check(const std::vector<AttentionQuery>& lists) {
    const std::vector<bf16> q = random_.Bf16s(std::ssize(lists) * kHeads * kDim);
    const std::vector<bf16> out = Attend(lists, q);
    for (size_t row = 0; row < lists.size() * kHeads; ++row) {
      SCOPED_TRACE(row);
      const AttentionQuery& list = lists[row / kHeads];
      const auto first = q.begin() + static_cast<int64_t>(row) * kDim;
      const std::vector<float> q_row = ToFloats({first, first + kDim});
      const float sink = sink_[row % kHeads];
      const std::vector<float> want = AttendByTheLetter(q_row, BlocksOf(list), sink, 0.125f);
      for (int64_t d = 0; d < kDim; ++d) ASSERT_EQ(ToFloat(out[row * kDim + d]), want[d]) << d;
      CheckAgainstDouble(list, q_row.data(), sink, out.data() + row * kDim);
    }
  }

  AttentionQuery Window(int64_t begin, int64_t end, int64_t slots) const {
    AttentionQuery list;
    list.window = &window_;
    list.window_begin = begin;
    list.window_end = end;
    list.window_slots = slots;
    return list;
  }
  AttentionQuery With(AttentionQuery list, const std::vector<int32_t>& selected) const {
    list.entries = &entries_;
    list.selected = selected.data();
    list.selected_count = std::ssize(selected);
    return list;
  }

  Random random_{5};
  ThreadPool pool_{2};
  std::vector<uint8_t> ring_ = std::vector<uint8_t>(kRing * kWindowBytes);
  std::vector<uint8_t> chunk_ = std::vector<uint8_t>((kPositions - kChunkStart) * kWindowBytes);
  std::vector<std::vector<uint8_t>> blocks_;
  std::vector<const uint8_t*> block_pointers_;
  std::vector<std::vector<float>> window_keys_, entry_keys_;
  std::vector<float> sink_ = random_.Floats(kHeads, 0.5);
  EntryBlocks entries_;
  WindowView window_;
};

TEST_F(AttentionTest, WindowReadsTheRingBelowTheChunkAndTheChunkFromItsStart) {
  Check({Window(134, 150, 16), Window(140, 156, 16), Window(149, 151, 16), Window(150, 200, 50),
         Window(199, 200, 16)});
}

TEST_F(AttentionTest, SelectedEntriesFollowTheWindow) {
  std::vector<int32_t> all(kEntries), few = {0, 7, 8, 63, 99};
  for (int32_t e = 0; e < kEntries; ++e) all[e] = e;
  Check({With(Window(140, 156, 16), few), With(Window(140, 156, 16), all),
         With(Window(0, 0, 0), few)});
}

// The same members behind a different number of empty slots fall into other softmax blocks.
TEST_F(AttentionTest, EmptySlotsMoveTheCutIntoBlocks) {
  std::vector<int32_t> all(kEntries);
  for (int32_t e = 0; e < kEntries; ++e) all[e] = e;
  const AttentionQuery near = With(Window(150, 155, 5), all), far = With(Window(150, 155, 60), all);
  Check({near, far, With(Window(150, 155, 64), all), With(Window(150, 155, 128), all)});
  const std::vector<bf16> q = random_.Bf16s(kHeads * kDim);
  EXPECT_NE(BitsOf(Attend({near}, q)), BitsOf(Attend({far}, q)));
}

TEST_F(AttentionTest, AListWithoutKeysGivesZero) {
  const std::vector<bf16> q = random_.Bf16s(2 * kHeads * kDim);
  for (const bf16 v : Attend({Window(0, 0, 0), Window(7, 7, 100)}, q)) EXPECT_EQ(ToFloat(v), 0.0f);
}

TEST_F(AttentionTest, AnOverwhelmingSinkTakesTheWholeWeight) {
  sink_.assign(kHeads, 80.0f);
  const std::vector<bf16> q = random_.Bf16s(kHeads * kDim);
  for (const bf16 v : Attend({Window(150, 160, 16)}, q)) EXPECT_LT(std::fabs(ToFloat(v)), 1e-20f);
}

}  // namespace
}  // namespace deepinfer::kernels
