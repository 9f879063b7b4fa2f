// Kernels over caches give the bits of the reference (targets with their own sum order: the same
// bits for every split of the work), on shapes that fill tiles, leave rests, and wake threads.
#include <limits>

#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

const KernelTable& Reference() { return reference::Table(); }

// Finite bf16 values over the whole range, zeros of both signs and the ends of the range.
std::vector<bf16> WideBf16s(Random& random, int64_t count) {
  std::vector<bf16> out(count);
  for (bf16& v : out) {
    v.bits = static_cast<uint16_t>(random.Bits());
    if ((v.bits & 0x7f80) == 0x7f80) v.bits = static_cast<uint16_t>(v.bits & 0xff7f);
    if (random.Below(0, 6) == 0) v.bits = static_cast<uint16_t>(v.bits & 0x8000);
  }
  return out;
}

// Rows whose groups lie around one magnitude, as activations do, among wide ones.
std::vector<bf16> MixedBf16s(Random& random, int64_t rows, int64_t cols) {
  std::vector<bf16> out = WideBf16s(random, rows * cols);
  for (int64_t r = 0; r < rows; ++r) {
    if (random.Below(0, 4) == 0) continue;
    const std::vector<bf16> row = random.Bf16s(cols, std::ldexp(1.0, random.Below(-30, 30)));
    std::copy(row.begin(), row.end(), out.begin() + r * cols);
  }
  return out;
}

using Pack = void (*KernelTable::*)(ThreadPool&, const bf16*, int64_t, int64_t, uint8_t* const*);

std::vector<uint8_t> Packed(const KernelTable& table, Pack pack, ThreadPool& pool,
                            const std::vector<bf16>& x, int64_t dim, int64_t bytes) {
  const int64_t rows = std::ssize(x) / dim;
  std::vector<uint8_t> records(rows * bytes);
  std::vector<uint8_t*> out;
  for (int64_t r = 0; r < rows; ++r) out.push_back(records.data() + r * bytes);
  (table.*pack)(pool, x.data(), rows, dim, out.data());
  return records;
}

TEST(ContextBits, QuantizersAreTheReference) {
  Random random(1);
  for (const int64_t dim : {32, 64, 96, 288, 512}) {
    for (const int64_t rows : {1, 7, 300}) {
      ThreadPool pool(3);
      const std::vector<bf16> x = MixedBf16s(random, rows, dim);
      std::vector<bf16> got = x, want = x;
      Kernels().round_q4u(pool, got.data(), rows, dim);
      Reference().round_q4u(pool, want.data(), rows, dim);
      ASSERT_EQ(BitsOf(got), BitsOf(want)) << dim;
      std::vector<uint8_t> codes(rows * dim), scales(rows * dim / 32), want_codes(rows * dim);
      std::vector<uint8_t> want_scales(rows * dim / 32);
      Kernels().quantize_q8(pool, {x.data(), rows, dim, dim},
                            {codes.data(), scales.data(), rows, dim});
      Reference().quantize_q8(pool, {x.data(), rows, dim, dim},
                              {want_codes.data(), want_scales.data(), rows, dim});
      ASSERT_EQ(codes, want_codes) << dim;
      ASSERT_EQ(scales, want_scales) << dim;
      struct Format {
        Pack pack;
        int64_t bytes;
      };
      for (const auto& [pack, bytes] : {Format{&KernelTable::pack_window, dim + dim / 32},
                                        Format{&KernelTable::pack_kv, dim / 2 + dim / 16},
                                        Format{&KernelTable::pack_index_key, dim / 2 + dim / 32}}) {
        ASSERT_EQ(Packed(Kernels(), pack, pool, x, dim, bytes),
                  Packed(Reference(), pack, pool, x, dim, bytes))
            << dim << ", record of " << bytes;
      }
    }
  }
}

TEST(ContextBits, PoolingAndScalingAreTheReference) {
  Random random(2);
  ThreadPool pool(3);
  for (const int64_t dim : {1, 15, 16, 100, 512}) {
    constexpr int64_t kGroups = 40;
    const std::vector<float> k = random.Floats(2 * kGroups * dim);
    std::vector<float> g = random.Floats(2 * kGroups * dim, 30);
    g[0] = 300, g[dim] = -300;
    std::vector<bf16> got(kGroups * dim), want(kGroups * dim);
    Kernels().pool_pairs(pool, k.data(), g.data(), kGroups, dim, got.data());
    Reference().pool_pairs(pool, k.data(), g.data(), kGroups, dim, want.data());
    ASSERT_EQ(BitsOf(got), BitsOf(want)) << dim;
    got = want = WideBf16s(random, 1000 * dim);
    Kernels().scale_bf16(pool, got.data(), std::ssize(got), 0.3f);
    Reference().scale_bf16(pool, want.data(), std::ssize(want), 0.3f);
    ASSERT_EQ(BitsOf(got), BitsOf(want)) << dim;
  }
}

// Queries at the end of a sequence, each with a full window and `selected` entries.
struct AttentionProblem {
  int64_t queries, heads, dim, window, selected;
  Random random{static_cast<uint64_t>(heads * 1000 + dim)};
  std::vector<uint8_t> chunk = {}, entries = {};
  std::vector<std::vector<int32_t>> chosen = {};
  std::vector<bf16> q = {};
  std::vector<float> sink = {};
  static constexpr int64_t kEntries = 700;

  void Fill() {
    ThreadPool pool(1);
    const int64_t positions = queries + window;
    chunk = Packed(Reference(), &KernelTable::pack_window, pool, random.Bf16s(positions * dim), dim,
                   dim + dim / 32);
    entries = Packed(Reference(), &KernelTable::pack_kv, pool, random.Bf16s(kEntries * dim), dim,
                     dim / 2 + dim / 16);
    q = random.Bf16s(queries * heads * dim, 0.5);
    sink = random.Floats(heads);
    for (int64_t i = 0; i < queries; ++i) {
      std::vector<int32_t>& list = chosen.emplace_back();
      const int64_t count = i % 3 == 2 ? selected / 2 : selected;
      for (int64_t e = 0; e < kEntries && std::ssize(list) < count; ++e) {
        if (random.Below(0, kEntries - e) < count - std::ssize(list)) {
          list.push_back(static_cast<int32_t>(e));
        }
      }
    }
  }

  std::vector<uint16_t> Run(const KernelTable& table, int threads, int64_t first,
                            int64_t count) const {
    ThreadPool pool(threads);
    const WindowView view{nullptr, 1, chunk.data(), 0, dim + dim / 32};
    const uint8_t* block = entries.data();
    const EntryBlocks stored{&block, kEntries, dim / 2 + dim / 16};
    std::vector<AttentionQuery> lists;
    for (int64_t i = first; i < first + count; ++i) {
      // The first queries see less than a window.
      const int64_t begin = std::max<int64_t>(0, i + 1 - window);
      lists.push_back(
          {&view, begin, i + 1, window, &stored, chosen[i].data(), std::ssize(chosen[i])});
    }
    std::vector<bf16> out(count * heads * dim);
    AttentionArgs args;
    args.queries = count;
    args.heads = heads;
    args.dim = dim;
    args.q = q.data() + first * heads * dim;
    args.sink = sink.data();
    args.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
    args.lists = lists.data();
    args.out = out.data();
    table.attention(pool, args);
    return BitsOf(out);
  }
};

TEST(ContextBits, AttentionIsTheReferenceForEverySplit) {
  AttentionProblem problems[] = {
      {40, 8, 128, 128, 128}, {3, 64, 512, 128, 512}, {25, 7, 96, 50, 77}, {300, 1, 32, 16, 3},
      {2, 65, 160, 128, 600}, {24, 16, 64, 64, 1},    {9, 13, 224, 130, 0}};
  for (AttentionProblem& p : problems) {
    p.Fill();
    SCOPED_TRACE(testing::Message() << p.heads << " heads of " << p.dim);
    const std::vector<uint16_t> all = p.Run(Kernels(), 1, 0, p.queries);
    if (HasReferenceSumOrder()) {
      ASSERT_EQ(all, p.Run(Reference(), 2, 0, p.queries));
    }
    ASSERT_EQ(all, p.Run(Kernels(), 2, 0, p.queries));
    ASSERT_EQ(all, p.Run(Kernels(), 5, 0, p.queries));
    const int64_t size = p.heads * p.dim;
    for (const int64_t i : {int64_t{0}, p.queries / 2, p.queries - 1}) {
      const std::vector<uint16_t> row(all.begin() + i * size, all.begin() + (i + 1) * size);
      ASSERT_EQ(row, p.Run(Kernels(), 1, i, 1)) << "query " << i << " alone";
      ASSERT_EQ(row, p.Run(Kernels(), 4, i, 1)) << "query " << i << " by four threads";
    }
  }
}

TEST(ContextBits, IndexScoresAreTheReferenceForEverySplit) {
  struct Shape {
    int64_t queries, heads, dim, entries;
  };
  for (const auto& [queries, heads, dim, entries] :
       {Shape{1, 32, 128, 1000}, Shape{9, 8, 64, 333}, Shape{70, 3, 32, 130}, Shape{2, 7, 160, 65},
        Shape{5, 33, 256, 64}}) {
    SCOPED_TRACE(testing::Message() << heads << " heads of " << dim);
    Random random(static_cast<uint64_t>(dim));
    ThreadPool one(1);
    const int64_t bytes = dim / 2 + dim / 32;
    const std::vector<uint8_t> records = Packed(Reference(), &KernelTable::pack_index_key, one,
                                                random.Bf16s(entries * dim), dim, bytes);
    std::vector<bf16> q = random.Bf16s(queries * heads * dim);
    Reference().round_q4u(one, q.data(), queries * heads, dim);
    const std::vector<bf16> weights = random.Bf16s(queries * heads);
    std::vector<int64_t> visible;
    for (int64_t i = 0; i < queries; ++i) visible.push_back(entries - i % entries);
    const uint8_t* block = records.data();
    const auto run = [&](const KernelTable& table, int threads, int64_t first, int64_t count) {
      ThreadPool pool(threads);
      std::vector<float> scores(count * entries, 7);
      IndexScoreArgs args;
      args.queries = count;
      args.heads = heads;
      args.dim = dim;
      args.q = q.data() + first * heads * dim;
      args.head_weights = weights.data() + first * heads;
      args.keys = {&block, entries, bytes};
      args.visible = visible.data() + first;
      args.scores = scores.data();
      args.stride = entries;
      table.index_scores(pool, args);
      return scores;
    };
    const std::vector<float> all = run(Kernels(), 1, 0, queries);
    if (HasReferenceSumOrder()) {
      ASSERT_EQ(all, run(Reference(), 1, 0, queries));
    }
    ASSERT_EQ(all, run(Kernels(), 2, 0, queries));
    ASSERT_EQ(all, run(Kernels(), 5, 0, queries));
    const int64_t last = queries - 1;
    std::vector<float> row(all.begin() + last * entries, all.end());
    // Alone, the row ends with its visible entries.
    std::fill(row.begin() + visible[last], row.end(), 7.0f);
    ASSERT_EQ(row, run(Kernels(), 2, last, 1));
  }
}

}  // namespace
}  // namespace deepinfer::kernels
