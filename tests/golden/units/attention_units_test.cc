// Core attention against the release's: 150-slot lists with runs of empty slots. The golden keys
// are arbitrary bf16 values and its lists have holes anywhere; the kernel reads packed records and
// knows holes only at the end of the window part. Two checks bridge that:
//  - the oracle of the kernel's unit tests (which the kernel equals bit for bit) gives the golden
//    output on the lists and keys as they are;
//  - the kernel gives it on equivalent input. A key is the sum of three e4m3 records of 64 values,
//    side by side, against a query repeated three times; a hole is a record that a fourth group of
//    32 sends to a score of -10^5, so that its probability is exactly zero.
#include "tests/golden/units/units_testing.h"
#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::golden {
namespace {

constexpr int64_t kQueries = 5, kHeads = 4, kDim = 64, kSlots = 150, kBlock = 64;
constexpr int64_t kParts = 3, kWideDim = kParts * kDim + 32;
constexpr float kScale = 0.125f;

struct Golden {
  std::vector<bf16> q = UnitBf16("sparse_attn.q"), kv = UnitBf16("sparse_attn.kv");
  std::vector<int32_t> idxs = Units().Raw<int32_t>("sparse_attn.idxs");
  std::vector<float> sink = UnitF32("sparse_attn.sink");
};

TEST(AttentionUnits, OracleOfTheKernelTestsIsTheRelease) {
  const Golden golden;
  std::vector<bf16> out;
  for (int64_t i = 0; i < kQueries; ++i) {
    kernels::KeyBlocks blocks(kernels::CeilDiv(kSlots, kBlock));
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      const int32_t entry = golden.idxs[i * kSlots + slot];
      if (entry < 0) continue;
      const auto first = golden.kv.begin() + entry * kDim;
      blocks[slot / kBlock].push_back(kernels::ToFloats({first, first + kDim}));
    }
    for (int64_t h = 0; h < kHeads; ++h) {
      const auto first = golden.q.begin() + (i * kHeads + h) * kDim;
      for (const float v : kernels::AttendByTheLetter(kernels::ToFloats({first, first + kDim}),
                                                      blocks, golden.sink[h], kScale)) {
        out.push_back(ToBf16(v));
      }
    }
  }
  ExpectBf16(out, "sparse_attn.o");
}

// The window record of a key in three parts; an empty key makes a hole.
std::vector<uint8_t> SplitRecord(ThreadPool& pool, std::vector<float> key) {
  std::vector<bf16> wide(kWideDim);
  if (key.empty()) {
    wide[kParts * kDim] = ToBf16(-1e6f);
    key.resize(kDim);
  }
  std::vector<uint8_t> record(kWideDim + kWideDim / 32);
  uint8_t* const out = record.data();
  for (int64_t part = 0; part < kParts; ++part) {
    for (int64_t d = 0; d < kDim; ++d) wide[part * kDim + d] = ToBf16(key[d]);
    Kernels().pack_window(pool, wide.data(), 1, kWideDim, &out);
    for (int64_t d = 0; d < kDim; ++d) {
      const int64_t at = part * kDim + d;
      key[d] -= E4M3ToFloat(record[at]) * E8M0ToFloat(record[kWideDim + at / 32]);
    }
  }
  for (const float rest : key) EXPECT_LE(std::fabs(rest), 1e-6f) << "three parts must be the key";
  return record;
}

TEST(AttentionUnits, KernelIsTheReleaseOnEquivalentLists) {
  ThreadPool pool(2);
  const Golden golden;
  std::vector<bf16> q(kQueries * kHeads * kWideDim);
  for (int64_t row = 0; row < kQueries * kHeads; ++row) {
    for (int64_t d = 0; d < kParts * kDim; ++d) {
      q[row * kWideDim + d] = golden.q[row * kDim + d % kDim];
    }
    q[row * kWideDim + kParts * kDim] = ToBf16(1);
  }
  std::vector<std::vector<uint8_t>> chunks(kQueries);
  std::vector<kernels::WindowView> windows(kQueries);
  std::vector<kernels::AttentionQuery> lists(kQueries);
  for (int64_t i = 0; i < kQueries; ++i) {
    int64_t occupied = 0;
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      const int32_t entry = golden.idxs[i * kSlots + slot];
      std::vector<float> key;
      for (int64_t d = 0; entry >= 0 && d < kDim; ++d) {
        key.push_back(ToFloat(golden.kv[entry * kDim + d]));
      }
      occupied += entry >= 0;
      const std::vector<uint8_t> record = SplitRecord(pool, key);
      chunks[i].insert(chunks[i].end(), record.begin(), record.end());
    }
    windows[i].chunk = chunks[i].data();
    windows[i].entry_bytes = kWideDim + kWideDim / 32;
    lists[i].window = &windows[i];
    lists[i].window_end = occupied == 0 ? 0 : kSlots;
    lists[i].window_slots = kSlots;
  }
  std::vector<bf16> wide(q.size());
  kernels::AttentionArgs args{.queries = kQueries, .heads = kHeads, .dim = kWideDim, .q = q.data()};
  args.sink = golden.sink.data();
  args.scale = kScale;
  args.lists = lists.data();
  args.out = wide.data();
  Kernels().attention(pool, args);
  const std::vector<bf16> want = UnitBf16("sparse_attn.o");
  for (int64_t i = 0; i < kQueries * kHeads * kDim; ++i) {
    const bf16* parts = wide.data() + i / kDim * kWideDim + i % kDim;
    double sum = 0;
    // The golden value and each part are rounded to bf16; 2^-20 is for fp32 sums over 150 keys of
    // size 1.
    double tolerance = kernels::Bf16Ulp(ToFloat(want[i])) / 2 + 0x1p-20;
    for (int64_t part = 0; part < kParts; ++part) {
      sum += ToFloat(parts[part * kDim]);
      tolerance += kernels::Bf16Ulp(ToFloat(parts[part * kDim])) / 2;
    }
    ASSERT_NEAR(sum, ToFloat(want[i]), tolerance) << "element " << i;
  }
}

}  // namespace
}  // namespace deepinfer::golden
