// The table's first rule, kernel by kernel: a row's bytes are the same alone and among others, and
// for any number of threads.
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

constexpr int64_t kRows = 70;

using Bytes = std::vector<uint8_t>;

template <typename T>
void Append(Bytes& out, const T* values, int64_t count) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values);
  out.insert(out.end(), bytes, bytes + count * static_cast<int64_t>(sizeof(T)));
}

template <typename T>
Bytes AsBytes(const std::vector<T>& values) {
  Bytes out;
  Append(out, values.data(), std::ssize(values));
  return out;
}

// Inputs of kRows rows, and for each kernel the bytes it makes of rows [first, first + count),
// row by row. A case is named after its entry of the table, with "/" and a word behind where one
// entry has several.
class Cases {
 public:
  using Run = std::function<Bytes(ThreadPool&, int64_t first, int64_t count)>;
  struct Case {
    std::string name;
    Run run;
  };

  Cases() {
    AddQuantizers();
    AddGemms();
    AddRowKernels();
    AddHyperConnections();
    AddAttention();
    AddIndexer();
    AddMoe();
    AddEngram();
    AddHead();
  }
  const std::vector<Case>& all() const { return cases_; }

 private:
  static constexpr int64_t kCols = 64, kOutputs = 13, kStreams = 4, kEntries = 90, kHeads = 5;
  static constexpr int64_t kWindowBytes = kCols + kCols / 32, kKvBytes = kCols / 2 + kCols / 16;
  static constexpr int64_t kIndexBytes = kCols / 2 + kCols / 32;

  void Add(const std::string& name, Run run) { cases_.push_back({name, std::move(run)}); }

  void AddPack(const std::string& name, int64_t bytes,
               void (*pack)(ThreadPool&, const bf16*, int64_t, int64_t, uint8_t* const*)) {
    Add(name, [this, bytes, pack](ThreadPool& pool, int64_t first, int64_t count) {
      Bytes out(count * bytes);
      std::vector<uint8_t*> records;
      for (int64_t r = 0; r < count; ++r) records.push_back(out.data() + r * bytes);
      pack(pool, x_.data() + first * kCols, count, kCols, records.data());
      return out;
    });
  }

  void AddQuantizers() {
    Add("quantize_q8", [this](ThreadPool& pool, int64_t first, int64_t count) {
      Bytes codes(count * kCols), scales(count * kCols / 32), out;
      Kernels().quantize_q8(pool, Rows(first, count), {codes.data(), scales.data(), count, kCols});
      for (int64_t r = 0; r < count; ++r) {
        Append(out, codes.data() + r * kCols, kCols);
        Append(out, scales.data() + r * kCols / 32, kCols / 32);
      }
      return out;
    });
    Add("round_q4u", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> x(x_.begin() + first * kCols, x_.begin() + (first + count) * kCols);
      Kernels().round_q4u(pool, x.data(), count, kCols);
      return AsBytes(x);
    });
    AddPack("pack_window", kWindowBytes, Kernels().pack_window);
    AddPack("pack_kv", kKvBytes, Kernels().pack_kv);
    AddPack("pack_index_key", kIndexBytes, Kernels().pack_index_key);
  }

  template <typename T, typename Call>
  void AddGemm(const std::string& name, Call call) {
    Add(name, [call](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<T> y(count * kOutputs);
      call(pool, first, count, y.data());
      return AsBytes(y);
    });
  }

  void AddGemms() {
    AddGemm<bf16>("gemm/q8_fp8", [this](ThreadPool& pool, int64_t first, int64_t count, bf16* y) {
      Kernels().Multiply(pool, kernels::MakeGemm(Q8(first, count), Fp8(), y, kOutputs));
    });
    AddGemm<bf16>("gemm/q8_fp4", [this](ThreadPool& pool, int64_t first, int64_t count, bf16* y) {
      Kernels().Multiply(
          pool,
          kernels::MakeGemm(Q8(first, count),
                            kernels::Fp4Matrix{w_codes_.data(), w_scales_.data(), kOutputs, kCols},
                            y, kOutputs));
    });
    AddGemm<bf16>("gemm/bf16_fp8", [this](ThreadPool& pool, int64_t first, int64_t count, bf16* y) {
      Kernels().Multiply(pool, kernels::MakeGemm(Rows(first, count), Fp8(), y, kOutputs));
    });
    AddGemm<bf16>("gemm/bf16", [this](ThreadPool& pool, int64_t first, int64_t count, bf16* y) {
      Kernels().Multiply(
          pool, kernels::MakeGemm(Rows(first, count),
                                  kernels::Bf16Matrix{w_.data(), kOutputs, kCols}, y, kOutputs));
    });
    AddGemm<float>("gemm/bf16_f32", [this](ThreadPool& pool, int64_t first, int64_t count,
                                           float* y) {
      Kernels().Multiply(
          pool, kernels::MakeGemm(Rows(first, count),
                                  kernels::Bf16Matrix{w_.data(), kOutputs, kCols}, y, kOutputs));
    });
  }

  void AddRowKernels() {
    Add("rms_norm", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> y(count * kCols);
      Kernels().rms_norm(pool, Rows(first, count), w_.data(), 1e-20f, y.data());
      return AsBytes(y);
    });
    Add("rope", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> x(x_.begin() + first * kCols, x_.begin() + (first + count) * kCols);
      Kernels().rope(pool, x.data(), count, 2, kCols / 2, 16, f_.data() + first * 8,
                     f_.data() + (first + 1) * 8, false);
      return AsBytes(x);
    });
    Add("pool_pairs", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> out(count * 16);
      Kernels().pool_pairs(pool, f_.data() + first * 32, f_.data() + 7 + first * 32, count, 16,
                           out.data());
      return AsBytes(out);
    });
    Add("scale_bf16", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> x(x_.begin() + first, x_.begin() + first + count);
      Kernels().scale_bf16(pool, x.data(), count, 0.3f);
      return AsBytes(x);
    });
  }

  void AddHyperConnections() {
    Add("mhc_mixes", [this](ThreadPool& pool, int64_t first, int64_t count) {
      const float scale[] = {0.7f, 1.3f, 0.9f};
      std::vector<float> pre(count * 4), post(count * 4), comb(count * 16);
      MhcArgs args;
      args.rows = count;
      args.hidden = kCols / 4;
      args.streams = kStreams;
      args.h = x_.data() + first * kCols;
      args.fn = {f_.data(), 24, kCols};
      args.scale = scale;
      args.base = f_.data() + 99;
      args.sinkhorn_iterations = 5;
      args.norm_eps = 1e-20f;
      args.hc_eps = 1e-6f;
      args.pre = pre.data();
      args.post = post.data();
      args.comb = comb.data();
      Kernels().mhc_mixes(pool, args);
      Bytes out;
      for (int64_t r = 0; r < count; ++r) {
        Append(out, pre.data() + r * 4, 4);
        Append(out, post.data() + r * 4, 4);
        Append(out, comb.data() + r * 16, 16);
      }
      return out;
    });
    Add("mhc_collapse", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> x(count * 16);
      Kernels().mhc_collapse(pool, x_.data() + first * kCols, f_.data() + first * 4, count, 4, 16,
                             x.data());
      return AsBytes(x);
    });
    Add("mhc_expand", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> h(x_.begin() + first * kCols, x_.begin() + (first + count) * kCols);
      Kernels().mhc_expand(pool, w_.data() + first * 16, f_.data() + first * 4,
                           f_.data() + first * 16, count, 4, 16, h.data());
      return AsBytes(h);
    });
    Add("stream_mean", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> tap(count * 16);
      Kernels().stream_mean(pool, x_.data() + first * kCols, count, 4, 16, tap.data(), 16);
      return AsBytes(tap);
    });
  }

  void AddAttention() {
    for (int64_t r = 0; r < kRows; ++r) {
      records_.emplace_back(kWindowBytes);
      uint8_t* window = records_.back().data();
      Kernels().pack_window(one_, x_.data() + r * kCols, 1, kCols, &window);
      chunk_.insert(chunk_.end(), window, window + kWindowBytes);
    }
    entry_bytes_.resize(kEntries * kKvBytes);
    key_bytes_.resize(kEntries * kIndexBytes);
    for (int64_t e = 0; e < kEntries; ++e) {
      uint8_t* kv = entry_bytes_.data() + e * kKvBytes;
      uint8_t* key = key_bytes_.data() + e * kIndexBytes;
      Kernels().pack_kv(one_, q_.data() + e * kCols, 1, kCols, &kv);
      Kernels().pack_index_key(one_, q_.data() + e * kCols, 1, kCols, &key);
      all_entries_.push_back(static_cast<int32_t>(e));
    }
    entry_block_ = entry_bytes_.data();
    key_block_ = key_bytes_.data();
    Add("attention", [this](ThreadPool& pool, int64_t first, int64_t count) {
      const WindowView window{nullptr, 1, chunk_.data(), 0, kWindowBytes};
      const EntryBlocks entries{&entry_block_, kEntries, kKvBytes};
      std::vector<AttentionQuery> lists;
      for (int64_t r = first; r < first + count; ++r) {
        lists.push_back({&window, std::max<int64_t>(0, r - 15), r + 1, 16, &entries,
                         all_entries_.data(), std::min(kEntries, r)});
      }
      std::vector<bf16> out(count * kHeads * kCols);
      AttentionArgs args;
      args.queries = count;
      args.heads = kHeads;
      args.dim = kCols;
      args.q = q_.data() + first * kHeads * kCols;
      args.sink = f_.data();
      args.scale = 0.125f;
      args.lists = lists.data();
      args.out = out.data();
      Kernels().attention(pool, args);
      return AsBytes(out);
    });
  }

  void AddIndexer() {
    for (int64_t r = 0; r < kRows; ++r) visible_.push_back(r + 1);
    Add("index_scores", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<float> scores(count * kEntries, -std::numeric_limits<float>::infinity());
      IndexScoreArgs args;
      args.queries = count;
      args.heads = kHeads;
      args.dim = kCols;
      args.q = q_.data() + first * kHeads * kCols;
      args.head_weights = x_.data() + first * kHeads;
      args.keys = {&key_block_, kEntries, kIndexBytes};
      args.visible = visible_.data() + first;
      args.scores = scores.data();
      args.stride = kEntries;
      Kernels().index_scores(pool, args);
      return AsBytes(scores);
    });
    Add("candidates", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<int32_t> blocks(count * 3, -1);
      std::vector<int64_t> block_count(count);
      CandidateArgs args;
      args.queries = count;
      args.scores = f_.data() + first * kEntries;
      args.visible = visible_.data() + first;
      args.stride = kEntries;
      args.block_size = 5;
      args.top_blocks = 3;
      args.blocks = blocks.data();
      args.block_count = block_count.data();
      Kernels().candidates(pool, args);
      Bytes out;
      for (int64_t r = 0; r < count; ++r) {
        Append(out, blocks.data() + r * 3, 3);
        Append(out, block_count.data() + r, 1);
      }
      return out;
    });
    Add("select", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<float> scores(f_.begin() + first * kEntries,
                                f_.begin() + (first + count) * kEntries);
      std::vector<int32_t> selected(count * 9);
      std::vector<int64_t> selected_count(count);
      SelectArgs args;
      args.queries = count;
      args.scores = scores.data();
      args.visible = visible_.data() + first;
      args.stride = kEntries;
      args.topk = 9;
      args.selected = selected.data();
      args.selected_count = selected_count.data();
      Kernels().select(pool, args);
      Bytes out;
      for (int64_t r = 0; r < count; ++r) {
        Append(out, selected.data() + r * 9, 9);
        Append(out, selected_count.data() + r, 1);
      }
      return out;
    });
  }

  void AddMoe() {
    Add("gate", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<float> scores(count * 12), weights(count * 3);
      std::vector<int32_t> ids(count * 3);
      GateArgs args;
      args.rows = count;
      args.experts = 12;
      args.topk = 3;
      args.logits = f_.data() + first * 12;
      args.bias = f_.data();
      args.scores = scores.data();
      args.ids = ids.data();
      args.weights = weights.data();
      Kernels().gate(pool, args);
      Bytes out;
      for (int64_t r = 0; r < count; ++r) {
        Append(out, scores.data() + r * 12, 12);
        Append(out, ids.data() + r * 3, 3);
        Append(out, weights.data() + r * 3, 3);
      }
      return out;
    });
    Add("swiglu_q8", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> u(count * kCols);
      Bytes codes(count * kCols), scales(count * kCols / 32), out;
      Kernels().swiglu_q8(pool, {.rows = count,
                                 .cols = kCols,
                                 .a = x_.data() + first * kCols,
                                 .b = q_.data() + first * kCols,
                                 .weight = f_.data() + first,
                                 .limit = 1.5f,
                                 .out = {codes.data(), scales.data(), count, kCols},
                                 .u = u.data()});
      for (int64_t r = 0; r < count; ++r) {
        Append(out, u.data() + r * kCols, kCols);
        Append(out, codes.data() + r * kCols, kCols);
        Append(out, scales.data() + r * kCols / 32, kCols / 32);
      }
      return out;
    });
    for (int32_t i = 0; i < kRows * 3; ++i) slots_.push_back(i * 11 % kRows);
    Add("combine", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> out(count * kCols);
      Kernels().combine(pool, {.rows = count,
                               .topk = 3,
                               .hidden = kCols,
                               .y = q_.data(),
                               .slots = slots_.data() + first * 3,
                               .shared = x_.data() + first * kCols,
                               .out = out.data()});
      return AsBytes(out);
    });
  }

  void AddHead() {
    Add("top_logits", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<int32_t> ids(count * 5);
      std::vector<float> logits(count * 5);
      Kernels().top_logits(pool, {.x = Rows(first, count),
                                  .w = {q_.data(), kRows * kHeads, kCols},
                                  .topk = 5,
                                  .ids = ids.data(),
                                  .logits = logits.data()});
      Bytes out;
      for (int64_t r = 0; r < count; ++r) {
        Append(out, ids.data() + r * 5, 5);
        Append(out, logits.data() + r * 5, 5);
      }
      return out;
    });
  }

  void AddEngram() {
    for (int64_t i = 0; i < kRows * 2; ++i) row_ids_.push_back(i * 5 % kOutputs);
    Add("engram_gather", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> out(count * 2 * kCols);
      EngramGatherArgs args;
      args.rows = count;
      args.columns = 2;
      args.dim = kCols;
      args.row_ids = row_ids_.data() + first * 2;
      args.codes = w_codes_.data();
      args.scales = w_scales_.data();
      args.out = out.data();
      Kernels().engram_gather(pool, args);
      return AsBytes(out);
    });
    Add("engram_mix", [this](ThreadPool& pool, int64_t first, int64_t count) {
      std::vector<bf16> h(x_.begin() + first * kCols, x_.begin() + (first + count) * kCols);
      EngramMixArgs args;
      args.rows = count;
      args.hidden = 16;
      args.streams = 4;
      args.kv = q_.data() + first * 80;
      args.q_weight = w_.data();
      args.k_weight = w_.data() + 64;
      args.norm_eps = 1e-20f;
      args.h = h.data();
      Kernels().engram_mix(pool, args);
      return AsBytes(h);
    });
  }

  RowsView Rows(int64_t first, int64_t count) const {
    return {x_.data() + first * kCols, count, kCols, kCols};
  }
  Q8Rows Q8(int64_t first, int64_t count) {
    return {q8_codes_.data() + first * kCols, q8_scales_.data() + first * kCols / 32, count, kCols};
  }
  Fp8Matrix Fp8() const { return {w_codes_.data(), w_scales_.data(), kOutputs, kCols}; }

  ThreadPool one_{1};
  Random random_{1};
  std::vector<bf16> x_ = random_.Bf16s(kRows * kCols);
  std::vector<bf16> q_ = random_.Bf16s(kRows * kHeads * kCols);
  std::vector<bf16> w_ = random_.Bf16s(kRows * kCols);
  std::vector<float> f_ = random_.Floats(kRows * kEntries);
  std::vector<uint8_t> q8_codes_ = random_.E4M3Codes(kRows * kCols);
  std::vector<uint8_t> q8_scales_ = random_.E8M0Scales(kRows * kCols / 32);
  std::vector<uint8_t> w_codes_ = random_.E4M3Codes(kOutputs * kCols);
  std::vector<uint8_t> w_scales_ = random_.E8M0Scales(kOutputs * kCols / 32);
  std::vector<std::vector<uint8_t>> records_;
  Bytes chunk_, entry_bytes_, key_bytes_;
  const uint8_t* entry_block_ = nullptr;
  const uint8_t* key_block_ = nullptr;
  std::vector<int32_t> all_entries_, slots_;
  std::vector<int64_t> visible_, row_ids_;
  std::vector<Case> cases_;
};

TEST(Independence, EveryKernelOfTheTableHasACase) {
  constexpr size_t kKernels = sizeof(KernelTable) / sizeof(void*) - 1;  // less the name
  std::set<std::string> entries;
  const Cases cases;
  for (const Cases::Case& c : cases.all()) entries.insert(c.name.substr(0, c.name.find('/')));
  EXPECT_EQ(entries.size(), kKernels);
}

TEST(Independence, ARowIsTheSameAloneAndAmongOthers) {
  const Cases cases;
  ThreadPool pool(1);
  for (const Cases::Case& c : cases.all()) {
    const Bytes all = c.run(pool, 0, kRows);
    const int64_t row = std::ssize(all) / kRows;
    ASSERT_EQ(std::ssize(all) % kRows, 0) << c.name;
    for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{{0, 1},
                                                                               {1, 1},
                                                                               {33, 1},
                                                                               {69, 1},
                                                                               {0, 2},
                                                                               {5, 3},
                                                                               {7, 31},
                                                                               {3, 32},
                                                                               {2, 33},
                                                                               {1, 69}}) {
      const Bytes part = c.run(pool, first, count);
      EXPECT_EQ(part, Bytes(all.begin() + first * row, all.begin() + (first + count) * row))
          << c.name << ": rows " << first << " to " << first + count;
    }
  }
}

TEST(Independence, TheNumberOfThreadsChangesNothing) {
  const Cases cases;
  ThreadPool one(1), two(2), five(5);
  for (const Cases::Case& c : cases.all()) {
    for (const int64_t count : {int64_t{1}, int64_t{7}, kRows}) {
      const Bytes want = c.run(one, 0, count);
      EXPECT_EQ(c.run(two, 0, count), want) << c.name;
      EXPECT_EQ(c.run(five, 0, count), want) << c.name;
    }
  }
}

}  // namespace
}  // namespace deepinfer::kernels
