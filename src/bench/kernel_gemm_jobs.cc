// Products with the weights of a model, by matrix and number of rows.
#include <algorithm>
#include <memory>

#include "bench/kernel_bench.h"
#include "bench/kernel_inputs.h"

namespace deepinfer::bench {
namespace {

using kernels::GemmItem;
using kernels::GemmKind;
using kernels::kGroup;

// Only rows that want logits go through the head.
constexpr int64_t kMaxLogitRows = 16;

struct Matrix {
  const char* name;
  GemmKind kind;
  int64_t outputs;
  int64_t inputs;
  // Products in one call, as the model batches them.
  int64_t items = 1;
  // Rows beyond which the model never goes.
  int64_t max_rows = 1 << 20;
};

std::vector<Matrix> MatricesOf(const ModelConfig& c) {
  const int64_t heads = int64_t{c.num_heads} * c.head_dim;
  const int64_t groups = std::max(1, c.o_groups);
  const int64_t engram = c.engram_columns() * c.engram_head_dim;
  std::vector<Matrix> matrices = {
      {"wq_a", GemmKind::kQ8Fp8, c.q_lora_rank, c.hidden_size},
      {"wq_b", GemmKind::kQ8Fp8, heads, c.q_lora_rank},
      {"wkv", GemmKind::kQ8Fp8, c.head_dim, c.hidden_size},
      {"wo_a", GemmKind::kBf16Fp8, c.o_lora_rank, heads / groups, groups},
      {"wo_b", GemmKind::kQ8Fp8, c.hidden_size, groups * c.o_lora_rank},
      {"shared_w1", GemmKind::kQ8Fp8, c.moe_intermediate_size, c.hidden_size},
      {"shared_w2", GemmKind::kQ8Fp8, c.hidden_size, c.moe_intermediate_size},
      {"expert_w1", GemmKind::kQ8Fp4, c.moe_intermediate_size, c.hidden_size},
      {"expert_w2", GemmKind::kQ8Fp4, c.hidden_size, c.moe_intermediate_size},
      {"experts_w1_w3", GemmKind::kQ8Fp4, c.moe_intermediate_size, c.hidden_size,
       2 * int64_t{c.experts_per_token}},
      {"gate", GemmKind::kBf16F32, c.num_experts, c.hidden_size},
      {"compressor_wkv", GemmKind::kBf16F32, c.head_dim, c.hidden_size},
      {"index_wk", GemmKind::kBf16, c.index_head_dim, c.hidden_size},
      {"index_wq_b", GemmKind::kQ8Fp8, int64_t{c.index_heads} * c.index_head_dim, c.q_lora_rank},
      {"head", GemmKind::kBf16F32, c.vocab_size, c.hidden_size, 1, kMaxLogitRows},
  };
  if (!c.engram_layers.empty()) {
    matrices.push_back(
        {"engram_wkv", GemmKind::kQ8Fp8, (int64_t{c.hc_mult} + 1) * c.hidden_size, engram});
  }
  return matrices;
}

const char* KindName(GemmKind kind) {
  switch (kind) {
    case GemmKind::kQ8Fp8:
      return "q8_fp8";
    case GemmKind::kQ8Fp4:
      return "q8_fp4";
    case GemmKind::kBf16Fp8:
      return "bf16_fp8";
    case GemmKind::kBf16:
      return "bf16";
    case GemmKind::kBf16F32:
      return "bf16_f32";
  }
  return "";
}

struct Weights {
  Buffer<uint8_t> codes, scales;
  Buffer<bf16> values;
  int64_t bytes() const { return codes.size() + scales.size() + 2 * values.size(); }
};

Weights MakeWeights(const Matrix& m, InputMaker& make) {
  const int64_t n = m.outputs, k = m.inputs;
  switch (m.kind) {
    case GemmKind::kQ8Fp8:
    case GemmKind::kBf16Fp8:
      return {
          make.E4m3Codes(n * k), make.E8m0Scales(kernels::CeilDiv(n, kGroup) * (k / kGroup)), {}};
    case GemmKind::kQ8Fp4:
      return {make.E2m1Bytes(n * k / 2), make.E8m0Scales(n * (k / kGroup)), {}};
    case GemmKind::kBf16:
    case GemmKind::kBf16F32:
      return {{}, {}, make.Bf16s(n * k)};
  }
  return {};
}

// Operands of one matrix at one number of rows.
struct Operands {
  Buffer<bf16> x;
  Buffer<uint8_t> x_codes, x_scales;
  Buffer<float> y;  // room for either type of output
  std::vector<Weights> copies;
  std::vector<GemmItem> items;
  size_t next = 0;
};

GemmItem MakeItem(const Matrix& m, int64_t rows, const Operands& o, const Weights& w, float* y) {
  const int64_t n = m.outputs, k = m.inputs;
  const kernels::Q8Rows q8{o.x_codes.data(), o.x_scales.data(), rows, k};
  const kernels::RowsView x{o.x.data(), rows, k, k};
  const kernels::Fp8Matrix fp8{w.codes.data(), w.scales.data(), n, k};
  const kernels::Fp4Matrix fp4{w.codes.data(), w.scales.data(), n, k};
  const kernels::Bf16Matrix values{w.values.data(), n, k};
  auto* y16 = reinterpret_cast<bf16*>(y);
  switch (m.kind) {
    case GemmKind::kQ8Fp8:
      return kernels::MakeGemm(q8, fp8, y16, n);
    case GemmKind::kQ8Fp4:
      return kernels::MakeGemm(q8, fp4, y16, n);
    case GemmKind::kBf16Fp8:
      return kernels::MakeGemm(x, fp8, y16, n);
    case GemmKind::kBf16:
      return kernels::MakeGemm(x, values, y16, n);
    case GemmKind::kBf16F32:
      return kernels::MakeGemm(x, values, y, n);
  }
  return {};
}

KernelCase MakeCase(const KernelJobArgs& args, const Matrix& m, int64_t rows) {
  InputMaker make(args.pool, 1);
  auto operands = std::make_shared<Operands>();
  operands->x = make.Bf16s(rows * m.inputs);
  operands->x_codes = Buffer<uint8_t>(rows * m.inputs);
  operands->x_scales = Buffer<uint8_t>(rows * (m.inputs / kGroup));
  args.table.quantize_q8(args.pool, {operands->x.data(), rows, m.inputs, m.inputs},
                         {operands->x_codes.data(), operands->x_scales.data(), rows, m.inputs});
  operands->y = Buffer<float>(m.items * rows * m.outputs);
  // Whole calls of `items` matrices until the caches are far too small.
  int64_t bytes = 0;
  do {
    for (int64_t i = 0; i < m.items; ++i) {
      const Weights& w = operands->copies.emplace_back(MakeWeights(m, make));
      bytes += w.bytes();
      operands->items.push_back(
          MakeItem(m, rows, *operands, w, operands->y.data() + i * rows * m.outputs));
    }
  } while (bytes < static_cast<int64_t>(args.settings.buffer_bytes / 4) &&
           std::ssize(operands->copies) < 4096);
  const int64_t call_bytes = bytes / std::ssize(operands->copies) * m.items;
  KernelCase kernel;
  kernel.params = {{"matrix", std::string(m.name)},
                   {"kind", std::string(KindName(m.kind))},
                   {"m", rows},
                   {"n", m.outputs},
                   {"k", m.inputs},
                   {"items", m.items}};
  kernel.operations = 2.0 * static_cast<double>(m.items * rows) * static_cast<double>(m.outputs) *
                      static_cast<double>(m.inputs);
  kernel.bytes = static_cast<double>(call_bytes);
  kernel.from_memory = true;
  kernel.run = [&table = args.table, &pool = args.pool, operands, items = m.items] {
    table.gemm(pool, operands->items.data() + operands->next, items);
    operands->next += static_cast<size_t>(items);
    if (operands->next == operands->items.size()) operands->next = 0;
  };
  return kernel;
}

// The head with a greedy draw fused: no logits are written.
KernelCase MakeTopLogitsCase(const KernelJobArgs& args, int64_t rows) {
  struct State {
    Buffer<bf16> x, head;
    int32_t id[kMaxLogitRows];
    float logit[kMaxLogitRows];
  };
  const ModelConfig& c = args.dimensions.config;
  InputMaker make(args.pool, 1);
  auto s = std::make_shared<State>();
  s->x = make.Bf16s(rows * c.hidden_size);
  s->head = make.Bf16s(c.vocab_size * c.hidden_size);
  KernelCase kernel;
  kernel.params = {{"m", rows}, {"n", c.vocab_size}, {"k", c.hidden_size}, {"topk", int64_t{1}}};
  kernel.bytes = 2.0 * static_cast<double>(c.vocab_size * c.hidden_size);
  kernel.operations = kernel.bytes * static_cast<double>(rows);
  // Small heads stay in the cache between calls.
  kernel.from_memory = kernel.bytes >= static_cast<double>(args.settings.buffer_bytes) / 4;
  const kernels::TopLogitsArgs call{.x = {s->x.data(), rows, c.hidden_size, c.hidden_size},
                                    .w = {s->head.data(), c.vocab_size, c.hidden_size},
                                    .topk = 1,
                                    .ids = s->id,
                                    .logits = s->logit};
  kernel.run = [&table = args.table, &pool = args.pool, s, call] { table.top_logits(pool, call); };
  return kernel;
}

}  // namespace

std::vector<KernelJob> GemmJobs(const KernelJobArgs& args) {
  std::vector<KernelJob> jobs;
  for (const Matrix& matrix : MatricesOf(args.dimensions.config)) {
    for (const int64_t rows : args.settings.rows) {
      if (rows > matrix.max_rows) continue;
      jobs.push_back({"gemm", [=] { return MakeCase(args, matrix, rows); }});
    }
  }
  for (const int64_t rows : args.settings.rows) {
    if (rows > kMaxLogitRows) continue;
    jobs.push_back({"top_logits", [=] { return MakeTopLogitsCase(args, rows); }});
  }
  return jobs;
}

}  // namespace deepinfer::bench
