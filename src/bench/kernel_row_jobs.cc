// Kernels that work row by row: quantisation, norms, rotation, hyper-connections, experts, Engram.
#include <algorithm>
#include <memory>

#include "bench/kernel_bench.h"
#include "bench/kernel_inputs.h"

namespace deepinfer::bench {
namespace {

using kernels::kGroup;
using kernels::kKvGroup;

// Engram table rows that the gather picks from.
constexpr int64_t kTableRows = 1 << 17;

// Builds cases of one configuration at one number of rows.
class RowCases {
 public:
  RowCases(const KernelJobArgs& args, int64_t rows)
      : table_(args.table),
        pool_(args.pool),
        c_(args.dimensions.config),
        rows_(rows),
        make_(args.pool, 1) {}

  KernelCase QuantizeQ8() {
    struct State {
      Buffer<bf16> x;
      Buffer<uint8_t> codes, scales;
    };
    const int64_t n = c_.hidden_size;
    return Case(State{make_.Bf16s(rows_ * n), Buffer<uint8_t>(rows_ * n),
                      Buffer<uint8_t>(rows_ * n / kGroup)},
                n, 3.0 + 1.0 / kGroup, [n, rows = rows_](auto& t, auto& pool, const State& s) {
                  t.quantize_q8(pool, {s.x.data(), rows, n, n},
                                {s.codes.data(), s.scales.data(), rows, n});
                });
  }
  KernelCase RoundQ4u() {
    const int64_t n = int64_t{c_.index_heads} * c_.index_head_dim;
    return Case(make_.Bf16s(rows_ * n), n, 4,
                [n, rows = rows_](auto& t, auto& pool, const Buffer<bf16>& x) {
                  t.round_q4u(pool, x.data(), rows, n);
                });
  }
  template <typename Pack>
  KernelCase PackRecords(int64_t dim, int64_t record_bytes, Pack pack) {
    struct State {
      Buffer<bf16> x;
      Buffer<uint8_t> records;
      std::vector<uint8_t*> out;
    };
    State state{make_.Bf16s(rows_ * dim), Buffer<uint8_t>(rows_ * record_bytes), {}};
    for (int64_t r = 0; r < rows_; ++r) {
      state.out.push_back(state.records.data() + r * record_bytes);
    }
    const double bytes = 2.0 + static_cast<double>(record_bytes) / static_cast<double>(dim);
    return Case(std::move(state), dim, bytes,
                [=, rows = rows_](auto& t, auto& pool, const State& s) {
                  (t.*pack)(pool, s.x.data(), rows, dim, s.out.data());
                });
  }
  KernelCase RmsNorm() {
    struct State {
      Buffer<bf16> x, weight, y;
    };
    const int64_t n = c_.hidden_size;
    return Case(State{make_.Bf16s(rows_ * n), make_.Bf16s(n), Buffer<bf16>(rows_ * n)}, n, 4,
                [n, rows = rows_](auto& t, auto& pool, const State& s) {
                  t.rms_norm(pool, {s.x.data(), rows, n, n}, s.weight.data(), 1e-6f, s.y.data());
                });
  }
  KernelCase Rope() {
    struct State {
      Buffer<bf16> x;
      Buffer<float> cos, sin;
    };
    const int64_t half = c_.rope_dim / 2, n = int64_t{c_.num_heads} * c_.head_dim;
    State state{make_.Bf16s(rows_ * n), Buffer<float>(rows_ * half), Buffer<float>(rows_ * half)};
    std::fill_n(state.cos.data(), rows_ * half, 0.8f);
    std::fill_n(state.sin.data(), rows_ * half, 0.6f);
    // Only the rotated part of a head moves.
    return Case(std::move(state), int64_t{c_.num_heads} * c_.rope_dim, 4,
                [&c = c_, rows = rows_](auto& t, auto& pool, const State& s) {
                  t.rope(pool, s.x.data(), rows, c.num_heads, c.head_dim, c.rope_dim, s.cos.data(),
                         s.sin.data(), false);
                });
  }
  KernelCase ScaleBf16() {
    return Case(make_.Bf16s(rows_ * c_.index_heads), c_.index_heads, 4,
                [n = rows_ * c_.index_heads](auto& t, auto& pool, const Buffer<bf16>& w) {
                  t.scale_bf16(pool, w.data(), n, -1.0f);
                });
  }
  KernelCase PoolPairs() {
    struct State {
      Buffer<float> k, g;
      Buffer<bf16> out;
    };
    const int64_t dim = c_.head_dim, n = 2 * rows_ * dim;
    return Case(State{make_.Floats(n), make_.Floats(n), Buffer<bf16>(rows_ * dim)}, dim, 18,
                [dim, rows = rows_](auto& t, auto& pool, const State& s) {
                  t.pool_pairs(pool, s.k.data(), s.g.data(), rows, dim, s.out.data());
                });
  }

  KernelCase MhcMixes() {
    struct State {
      Buffer<bf16> h;
      Buffer<float> fn, scale, base, pre, post, comb;
    };
    const int64_t streams = c_.hc_mult, width = streams * c_.hidden_size, mixes = c_.hc_mixes();
    State state{make_.Bf16s(rows_ * width),
                make_.Floats(mixes * width),
                make_.Floats(3),
                make_.Floats(mixes),
                Buffer<float>(rows_ * streams),
                Buffer<float>(rows_ * streams),
                Buffer<float>(rows_ * streams * streams)};
    KernelCase kernel =
        Case(std::move(state), width, 2,
             [&c = c_, rows = rows_, mixes, width](auto& t, auto& pool, const State& s) {
               t.mhc_mixes(pool, {.rows = rows,
                                  .hidden = c.hidden_size,
                                  .streams = c.hc_mult,
                                  .h = s.h.data(),
                                  .fn = {s.fn.data(), mixes, width},
                                  .scale = s.scale.data(),
                                  .base = s.base.data(),
                                  .sinkhorn_iterations = c.hc_sinkhorn_iters,
                                  .norm_eps = 1e-6f,
                                  .hc_eps = c.hc_eps,
                                  .pre = s.pre.data(),
                                  .post = s.post.data(),
                                  .comb = s.comb.data()});
             });
    kernel.operations = 2.0 * static_cast<double>(rows_ * mixes * width);
    kernel.fp32 = true;
    return kernel;
  }
  KernelCase MhcCollapse() {
    struct State {
      Buffer<bf16> h;
      Buffer<float> pre;
      Buffer<bf16> x;
    };
    const int64_t streams = c_.hc_mult, n = c_.hidden_size;
    return Case(State{make_.Bf16s(rows_ * streams * n), make_.Floats(rows_ * streams),
                      Buffer<bf16>(rows_ * n)},
                n, 2.0 * static_cast<double>(streams + 1),
                [&c = c_, rows = rows_](auto& t, auto& pool, const State& s) {
                  t.mhc_collapse(pool, s.h.data(), s.pre.data(), rows, c.hc_mult, c.hidden_size,
                                 s.x.data());
                });
  }
  KernelCase MhcExpand() {
    struct State {
      Buffer<bf16> y;
      Buffer<float> post, comb;
      Buffer<bf16> h;
    };
    const int64_t streams = c_.hc_mult, n = c_.hidden_size;
    State state{make_.Bf16s(rows_ * n), make_.Floats(rows_ * streams),
                Buffer<float>(rows_ * streams * streams), make_.Bf16s(rows_ * streams * n)};
    // Sums of one, so that the streams neither grow nor fade from call to call.
    std::fill_n(state.comb.data(), state.comb.size(), 1.0f / static_cast<float>(streams));
    return Case(std::move(state), n, 2.0 * static_cast<double>(2 * streams + 1),
                [&c = c_, rows = rows_](auto& t, auto& pool, const State& s) {
                  t.mhc_expand(pool, s.y.data(), s.post.data(), s.comb.data(), rows, c.hc_mult,
                               c.hidden_size, s.h.data());
                });
  }
  KernelCase StreamMean() {
    struct State {
      Buffer<bf16> h, tap;
    };
    const int64_t streams = c_.hc_mult, n = c_.hidden_size;
    return Case(State{make_.Bf16s(rows_ * streams * n), Buffer<bf16>(rows_ * n)}, n,
                2.0 * static_cast<double>(streams + 1),
                [&c = c_, rows = rows_, n](auto& t, auto& pool, const State& s) {
                  t.stream_mean(pool, s.h.data(), rows, c.hc_mult, n, s.tap.data(), n);
                });
  }

  KernelCase Gate() {
    struct State {
      Buffer<float> logits, bias, scores;
      Buffer<int32_t> ids;
      Buffer<float> weights;
    };
    const int64_t experts = c_.num_experts, topk = c_.experts_per_token;
    return Case(
        State{make_.Floats(rows_ * experts), make_.Floats(experts), Buffer<float>(rows_ * experts),
              Buffer<int32_t>(rows_ * topk), Buffer<float>(rows_ * topk)},
        experts, 8, [&c = c_, rows = rows_](auto& t, auto& pool, const State& s) {
          t.gate(pool, {.rows = rows,
                        .experts = c.num_experts,
                        .topk = c.experts_per_token,
                        .logits = s.logits.data(),
                        .bias = s.bias.data(),
                        .route_scale = c.routed_scaling_factor,
                        .scores = s.scores.data(),
                        .ids = s.ids.data(),
                        .weights = s.weights.data()});
        });
  }
  KernelCase SwiGluQ8() {
    struct State {
      Buffer<bf16> a, b;
      Buffer<float> weight;
      Buffer<uint8_t> codes, scales;
    };
    const int64_t n = c_.moe_intermediate_size;
    return Case(State{make_.Bf16s(rows_ * n), make_.Bf16s(rows_ * n), make_.Floats(rows_),
                      Buffer<uint8_t>(rows_ * n), Buffer<uint8_t>(rows_ * n / kGroup)},
                n, 5, [&c = c_, rows = rows_, n](auto& t, auto& pool, const State& s) {
                  t.swiglu_q8(pool, {.rows = rows,
                                     .cols = n,
                                     .a = s.a.data(),
                                     .b = s.b.data(),
                                     .weight = s.weight.data(),
                                     .limit = c.swiglu_limit,
                                     .out = {s.codes.data(), s.scales.data(), rows, n}});
                });
  }
  KernelCase Combine() {
    struct State {
      Buffer<bf16> y;
      Buffer<int32_t> slots;
      Buffer<bf16> shared, out;
    };
    const int64_t n = c_.hidden_size, topk = c_.experts_per_token;
    State state{make_.Bf16s(rows_ * topk * n), Buffer<int32_t>(rows_ * topk),
                make_.Bf16s(rows_ * n), Buffer<bf16>(rows_ * n)};
    for (int64_t i = 0; i < rows_ * topk; ++i) state.slots[i] = static_cast<int32_t>(i);
    return Case(std::move(state), n, 2.0 * static_cast<double>(topk + 2),
                [rows = rows_, topk, n](auto& t, auto& pool, const State& s) {
                  t.combine(pool, {.rows = rows,
                                   .topk = topk,
                                   .hidden = n,
                                   .y = s.y.data(),
                                   .slots = s.slots.data(),
                                   .shared = s.shared.data(),
                                   .out = s.out.data()});
                });
  }

  KernelCase EngramGather() {
    struct State {
      Buffer<uint8_t> codes, scales;
      Buffer<int64_t> ids;
      Buffer<bf16> out;
    };
    const int64_t columns = c_.engram_columns(), dim = c_.engram_head_dim;
    State state{make_.E4m3Codes(kTableRows * dim), make_.E8m0Scales(kTableRows * dim / kGroup),
                Buffer<int64_t>(rows_ * columns), Buffer<bf16>(rows_ * columns * dim)};
    for (int64_t i = 0; i < rows_ * columns; ++i) state.ids[i] = make_.Below(kTableRows);
    return Case(std::move(state), columns * dim, 3,
                [rows = rows_, columns, dim](auto& t, auto& pool, const State& s) {
                  t.engram_gather(pool, {.rows = rows,
                                         .columns = columns,
                                         .dim = dim,
                                         .row_ids = s.ids.data(),
                                         .codes = s.codes.data(),
                                         .scales = s.scales.data(),
                                         .out = s.out.data()});
                });
  }
  KernelCase EngramMix() {
    struct State {
      Buffer<bf16> kv, q_weight, k_weight, h;
    };
    const int64_t streams = c_.hc_mult, n = c_.hidden_size;
    return Case(State{make_.Bf16s(rows_ * (streams + 1) * n), make_.Bf16s(streams * n),
                      make_.Bf16s(streams * n), make_.Bf16s(rows_ * streams * n)},
                n, 2.0 * static_cast<double>(3 * streams + 1),
                [&c = c_, rows = rows_](auto& t, auto& pool, const State& s) {
                  t.engram_mix(pool, {.rows = rows,
                                      .hidden = c.hidden_size,
                                      .streams = c.hc_mult,
                                      .kv = s.kv.data(),
                                      .q_weight = s.q_weight.data(),
                                      .k_weight = s.k_weight.data(),
                                      .norm_eps = 1e-6f,
                                      .h = s.h.data()});
                });
  }

 private:
  // `run` gets the table, the pool and the state. `width` values a row, bytes_per_value of them
  // read and written.
  template <typename State, typename Run>
  KernelCase Case(State state, int64_t width, double bytes_per_value, Run run) {
    KernelCase kernel;
    kernel.params = {{"rows", rows_}, {"width", width}};
    kernel.bytes = static_cast<double>(rows_ * width) * bytes_per_value;
    kernel.run = [&table = table_, &pool = pool_, run,
                  shared = std::make_shared<State>(std::move(state))] {
      run(table, pool, *shared);
    };
    return kernel;
  }

  const kernels::KernelTable& table_;
  ThreadPool& pool_;
  const ModelConfig& c_;
  const int64_t rows_;
  InputMaker make_;
};

struct NamedCase {
  const char* kernel;
  KernelCase (*make)(RowCases&, const ModelConfig&);
};

using Table = kernels::KernelTable;

constexpr NamedCase kCases[] = {
    {"quantize_q8", [](RowCases& r, const ModelConfig&) { return r.QuantizeQ8(); }},
    {"round_q4u", [](RowCases& r, const ModelConfig&) { return r.RoundQ4u(); }},
    {"pack_window",
     [](RowCases& r, const ModelConfig& c) {
       return r.PackRecords(c.head_dim, c.window_entry_bytes(), &Table::pack_window);
     }},
    {"pack_kv",
     [](RowCases& r, const ModelConfig& c) {
       return r.PackRecords(c.head_dim, c.kv_entry_bytes(), &Table::pack_kv);
     }},
    {"pack_index_key",
     [](RowCases& r, const ModelConfig& c) {
       return r.PackRecords(c.index_head_dim, c.index_entry_bytes(), &Table::pack_index_key);
     }},
    {"rms_norm", [](RowCases& r, const ModelConfig&) { return r.RmsNorm(); }},
    {"rope", [](RowCases& r, const ModelConfig&) { return r.Rope(); }},
    {"mhc_mixes", [](RowCases& r, const ModelConfig&) { return r.MhcMixes(); }},
    {"mhc_collapse", [](RowCases& r, const ModelConfig&) { return r.MhcCollapse(); }},
    {"mhc_expand", [](RowCases& r, const ModelConfig&) { return r.MhcExpand(); }},
    {"stream_mean", [](RowCases& r, const ModelConfig&) { return r.StreamMean(); }},
    {"pool_pairs", [](RowCases& r, const ModelConfig&) { return r.PoolPairs(); }},
    {"scale_bf16", [](RowCases& r, const ModelConfig&) { return r.ScaleBf16(); }},
    {"gate", [](RowCases& r, const ModelConfig&) { return r.Gate(); }},
    {"swiglu_q8", [](RowCases& r, const ModelConfig&) { return r.SwiGluQ8(); }},
    {"combine", [](RowCases& r, const ModelConfig&) { return r.Combine(); }},
    {"engram_gather", [](RowCases& r, const ModelConfig&) { return r.EngramGather(); }},
    {"engram_mix", [](RowCases& r, const ModelConfig&) { return r.EngramMix(); }},
};

}  // namespace

std::vector<KernelJob> RowJobs(const KernelJobArgs& args) {
  const auto [least, greatest] = std::ranges::minmax(args.settings.rows);
  std::vector<KernelJob> jobs;
  for (const NamedCase& named : kCases) {
    const auto add = [&](int64_t rows) {
      jobs.push_back({named.kernel, [args, rows, make = named.make] {
                        RowCases cases(args, rows);
                        return make(cases, args.dimensions.config);
                      }});
    };
    add(least);
    if (greatest != least) add(greatest);
  }
  return jobs;
}

}  // namespace deepinfer::bench
