// The kernel table: every computation of the model as one function over plain views. A back end is
// a filled table; the model calls nothing else. Sources: spec model-v41 section 2.
//
// Rules for every back end:
//  - A row's result depends on that row alone: not on the number of rows, the thread count or the
//    tile it fell into. Sums run in an order that the row's own shape fixes.
//  - Views do not overlap unless a function says so. Pointers are aligned to their element type.
//  - Functions trust their arguments (shapes were checked when the model was created).
#pragma once

#include <cstdint>

#include "base/numeric.h"
#include "base/thread_pool.h"

namespace deepinfer::kernels {

// Elements a scale covers along a row: Q8 and Q4u groups, FP8 tiles, FP4 weights.
inline constexpr int64_t kGroup = 32;
// Elements an e4m3 scale covers in a compressed-KV entry (Q4e).
inline constexpr int64_t kKvGroup = 16;
// Attention lists are cut into softmax blocks of this many slots.
inline constexpr int kAttentionBlock = 64;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// --- Matrices. All are row-major [rows = outputs N, cols = inputs K]. Scales of weights lie within
// kMinWeightScale to kMaxWeightScale (tensor/weight_scale.h; loader/weight_check.h looks). ---

struct Fp8Matrix {
  const uint8_t* codes = nullptr;   // e4m3 [N, K]
  const uint8_t* scales = nullptr;  // e8m0 [ceil(N/32), K/32]
  int64_t rows = 0, cols = 0;
};

struct Fp4Matrix {
  const uint8_t* codes = nullptr;   // e2m1 [N, K/2], even element in the low nibble
  const uint8_t* scales = nullptr;  // e8m0 [N, K/32]
  int64_t rows = 0, cols = 0;
};

struct Bf16Matrix {
  const bf16* values = nullptr;  // [N, K]
  int64_t rows = 0, cols = 0;
};

struct F32Matrix {
  const float* values = nullptr;  // [N, K]
  int64_t rows = 0, cols = 0;
};

// Rows quantised by Q8: codes e4m3 [M, K], scales e8m0 [M, K/32].
struct Q8Rows {
  uint8_t* codes = nullptr;
  uint8_t* scales = nullptr;
  int64_t rows = 0, cols = 0;
};

// bf16 rows with a stride: row m starts at values + m * stride.
struct RowsView {
  const bf16* values = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;
};

// One product y[m, n] = sum_k x[m, k] w[n, k], fp32 accumulation, rows of y y_stride apart. Which
// of the members are set is what `kind` says: q8 or x as input, and one matrix. y is bf16 but for
// kBf16F32.
enum class GemmKind {
  kQ8Fp8,    // q8, fp8
  kQ8Fp4,    // q8, fp4
  kBf16Fp8,  // x, fp8 (output projection wo_a)
  kBf16,     // x, bf16 (ratio-1 compressor, index keys)
  kBf16F32,  // x, bf16, fp32 outputs (gate, ratio-2 compressor, head, Markov head)
};

struct GemmItem {
  GemmKind kind = GemmKind::kQ8Fp8;
  Q8Rows q8;
  RowsView x;
  Fp8Matrix fp8;
  Fp4Matrix fp4;
  Bf16Matrix bf16w;
  // Row m of the product reads input row gather[m] (null: m), for gather_rows rows.
  const int32_t* gather = nullptr;
  int64_t gather_rows = 0;
  void* y = nullptr;
  int64_t y_stride = 0;

  // Rows of y.
  int64_t rows() const {
    if (gather != nullptr) return gather_rows;
    return kind == GemmKind::kQ8Fp8 || kind == GemmKind::kQ8Fp4 ? q8.rows : x.rows;
  }
  // Columns of y, and length of the sums.
  int64_t outputs() const {
    return kind == GemmKind::kQ8Fp8 || kind == GemmKind::kBf16Fp8 ? fp8.rows
           : kind == GemmKind::kQ8Fp4                             ? fp4.rows
                                                                  : bf16w.rows;
  }
  int64_t inputs() const {
    return kind == GemmKind::kQ8Fp8 || kind == GemmKind::kQ8Fp4 ? q8.cols : x.cols;
  }
};

inline GemmItem MakeGemm(const Q8Rows& x, const Fp8Matrix& w, bf16* y, int64_t y_stride) {
  GemmItem item;
  item.kind = GemmKind::kQ8Fp8;
  item.q8 = x;
  item.fp8 = w;
  item.y = y;
  item.y_stride = y_stride;
  return item;
}
inline GemmItem MakeGemm(const Q8Rows& x, const Fp4Matrix& w, bf16* y, int64_t y_stride) {
  GemmItem item;
  item.kind = GemmKind::kQ8Fp4;
  item.q8 = x;
  item.fp4 = w;
  item.y = y;
  item.y_stride = y_stride;
  return item;
}
inline GemmItem MakeGemm(const RowsView& x, const Fp8Matrix& w, bf16* y, int64_t y_stride) {
  GemmItem item;
  item.kind = GemmKind::kBf16Fp8;
  item.x = x;
  item.fp8 = w;
  item.y = y;
  item.y_stride = y_stride;
  return item;
}
inline GemmItem MakeGemm(const RowsView& x, const Bf16Matrix& w, bf16* y, int64_t y_stride) {
  GemmItem item;
  item.kind = GemmKind::kBf16;
  item.x = x;
  item.bf16w = w;
  item.y = y;
  item.y_stride = y_stride;
  return item;
}
inline GemmItem MakeGemm(const RowsView& x, const Bf16Matrix& w, float* y, int64_t y_stride) {
  GemmItem item;
  item.kind = GemmKind::kBf16F32;
  item.x = x;
  item.bf16w = w;
  item.y = y;
  item.y_stride = y_stride;
  return item;
}

// --- Caches. Record formats: spec model-v41 section 4. ---

// Window record: dim e4m3 codes, then dim/32 e8m0 scales.
// KV record: dim/2 bytes of e2m1 codes, then dim/16 e4m3 scales.
// Index-key record: dim/2 bytes of e2m1 codes, then dim/32 e8m0 scales.

// Entries in blocks: entry j is record j mod entries_per_block of blocks[j / entries_per_block],
// whose records start `offset` bytes into it.
struct EntryBlocks {
  const uint8_t* const* blocks = nullptr;
  int64_t entries_per_block = 1;
  int64_t entry_bytes = 0;
  int64_t offset = 0;
  const uint8_t* entry(int64_t j) const {
    return blocks[j / entries_per_block] + offset + (j % entries_per_block) * entry_bytes;
  }
};

// Window records of one sequence: positions below chunk_start from the ring (slot = position mod
// ring_slots), later ones from the records of the running chunk.
struct WindowView {
  const uint8_t* ring = nullptr;
  int64_t ring_slots = 1;
  const uint8_t* chunk = nullptr;
  int64_t chunk_start = 0;
  int64_t entry_bytes = 0;
  const uint8_t* entry(int64_t position) const {
    return position < chunk_start ? ring + (position % ring_slots) * entry_bytes
                                  : chunk + (position - chunk_start) * entry_bytes;
  }
};

// The key list of one query: window positions [window_begin, window_end), padded with empty slots
// to window_slots, then `selected` entries of the compressed KV. Empty slots take part only in the
// cut into softmax blocks (spec section 2.5.6).
struct AttentionQuery {
  const WindowView* window = nullptr;
  int64_t window_begin = 0, window_end = 0;
  int64_t window_slots = 0;
  const EntryBlocks* entries = nullptr;  // null: no compressed part
  const int32_t* selected = nullptr;     // ascending
  int64_t selected_count = 0;
};

struct AttentionArgs {
  int64_t queries = 0, heads = 0, dim = 0;
  const bf16* q = nullptr;                // [queries, heads, dim], rotated
  const float* sink = nullptr;            // [heads]
  float scale = 0;                        // dim^-0.5
  const AttentionQuery* lists = nullptr;  // [queries]
  bf16* out = nullptr;                    // [queries, heads, dim]
};

// Blocks of entries that queries are restricted to: block b holds entries [b * size, (b + 1) *
// size), and query i keeps blocks[i * stride + c] for c < count[i], ascending. Without lists (null)
// every entry counts.
struct BlockLists {
  const int32_t* blocks = nullptr;
  const int64_t* count = nullptr;
  int64_t stride = 0, size = 1;
};

// Column c of a query's scores is entry c; with candidates, entry c % size of its block c / size.
struct IndexScoreArgs {
  int64_t queries = 0, heads = 0, dim = 0;
  const bf16* q = nullptr;             // [queries, heads, dim], on the Q4u grid
  const bf16* head_weights = nullptr;  // [queries, heads]
  EntryBlocks keys;                    // index-key records
  const int64_t* visible = nullptr;    // [queries]: entries [0, visible) can be chosen
  BlockLists candidates = {};
  // [queries, stride]: columns of a query up to the most that any query has; those without a
  // visible entry are -infinity.
  float* scores = nullptr;
  int64_t stride = 0;
};

struct CandidateArgs {
  int64_t queries = 0;
  const float* scores = nullptr;  // [queries, stride], without candidates
  const int64_t* visible = nullptr;
  int64_t stride = 0;
  int64_t block_size = 0, top_blocks = 0;
  int32_t* blocks = nullptr;       // [queries, top_blocks]: those kept, ascending
  int64_t* block_count = nullptr;  // [queries]
};

struct SelectArgs {
  int64_t queries = 0;
  const float* scores = nullptr;  // [queries, stride]
  const int64_t* visible = nullptr;
  BlockLists candidates = {};  // those of index_scores
  int64_t stride = 0;
  int64_t topk = 0;
  int32_t* selected = nullptr;        // [queries, topk]: ascending entry numbers, then -1
  int64_t* selected_count = nullptr;  // [queries]
};

struct MhcArgs {
  int64_t rows = 0, hidden = 0;
  int streams = 0;
  const bf16* h = nullptr;       // [rows, streams, hidden]
  F32Matrix fn;                  // [(2 + streams) * streams, streams * hidden]
  const float* scale = nullptr;  // [3]
  const float* base = nullptr;   // [(2 + streams) * streams]
  int sinkhorn_iterations = 0;
  float norm_eps = 0, hc_eps = 0;
  float* pre = nullptr;   // [rows, streams]
  float* post = nullptr;  // [rows, streams]
  float* comb = nullptr;  // [rows, source stream, destination stream]
};

struct GateArgs {
  int64_t rows = 0;
  int experts = 0, topk = 0;
  const float* logits = nullptr;      // [rows, experts]
  const float* bias = nullptr;        // [experts]
  const float* image_bias = nullptr;  // [experts] or null: bias of rows with is_image
  const uint8_t* is_image = nullptr;  // [rows] or null
  float route_scale = 1;
  float* scores = nullptr;   // [rows, experts]: sqrt(softplus(logits))
  int32_t* ids = nullptr;    // [rows, topk], by falling biased score, ties by lowest id
  float* weights = nullptr;  // [rows, topk], from the unbiased scores
};

// u = bf16(weight * silu(min(a, limit)) * clamp(b, +-limit)), quantised by Q8 in the same pass.
struct SwiGluArgs {
  int64_t rows = 0, cols = 0;     // cols: a multiple of kGroup
  const bf16* a = nullptr;        // [rows, cols]
  const bf16* b = nullptr;        // [rows, cols]
  const float* weight = nullptr;  // [rows] or null: 1
  float limit = 0;
  Q8Rows out;         // [rows, cols]
  bf16* u = nullptr;  // [rows, cols] or null: u itself, unquantised
};

// out[r] = bf16(sum over i of y[slots[r, i]] + shared[r]): fp32 from zero, i ascending, the shared
// row last.
struct CombineArgs {
  int64_t rows = 0, topk = 0, hidden = 0;
  const bf16* y = nullptr;         // [slots, hidden]
  const int32_t* slots = nullptr;  // [rows, topk]
  const bf16* shared = nullptr;    // [rows, hidden]
  bf16* out = nullptr;             // [rows, hidden], may be `shared`
};

struct EngramGatherArgs {
  int64_t rows = 0, columns = 0, dim = 0;
  const int64_t* row_ids = nullptr;  // [rows, columns]
  const uint8_t* codes = nullptr;    // table e4m3 [table rows, dim]
  const uint8_t* scales = nullptr;   // table e8m0 [table rows, dim/32]
  bf16* out = nullptr;               // [rows, columns * dim]
};

struct EngramMixArgs {
  int64_t rows = 0, hidden = 0;
  int streams = 0;
  const bf16* kv = nullptr;        // [rows, (streams + 1) * hidden]: keys, then one value
  const bf16* q_weight = nullptr;  // [streams, hidden]
  const bf16* k_weight = nullptr;
  const uint8_t* dead = nullptr;  // [rows] or null: 1 closes the gate
  float norm_eps = 0;
  bf16* h = nullptr;  // [rows, streams, hidden], updated in place
};

// The largest logits of every row, where the others are not wanted. The logits are those of a
// kBf16F32 product. Order: falling logit, ties by lowest id; NaN counts as larger than everything,
// so that callers see it.
struct TopLogitsArgs {
  RowsView x;
  Bf16Matrix w;             // [vocabulary, x.cols]
  int64_t topk = 1;         // 1 to kMaxTopLogits, at most w.rows
  int32_t* ids = nullptr;   // [rows, topk]
  float* logits = nullptr;  // [rows, topk]
};
inline constexpr int64_t kMaxTopLogits = 64;

// One back end. Every pointer is set.
struct KernelTable {
  const char* name = "";

  // Q8 (spec 2.0): per 32, power-of-two scale, e4m3 codes.
  void (*quantize_q8)(ThreadPool&, const RowsView& x, const Q8Rows& out);
  // Q4u in place (spec 2.0): x [rows, cols] becomes bf16 values on the e2m1 x e8m0 grid.
  void (*round_q4u)(ThreadPool&, bf16* x, int64_t rows, int64_t cols);
  // Records, one a row of x [rows, dim]; record r starts at out[r].
  void (*pack_window)(ThreadPool&, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out);
  void (*pack_kv)(ThreadPool&, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out);
  void (*pack_index_key)(ThreadPool&, const bf16* x, int64_t rows, int64_t dim,
                         uint8_t* const* out);

  // A batch of products, in any order and at once: no item may write what another reads.
  void (*gemm)(ThreadPool&, const GemmItem* items, int64_t count);
  void Multiply(ThreadPool& pool, const GemmItem& item) const { gemm(pool, &item, 1); }

  // y = bf16(w * (x * rsqrt(mean(x^2) + eps))). y may be x when the strides agree.
  void (*rms_norm)(ThreadPool&, const RowsView& x, const bf16* weight, float eps, bf16* y);
  // Rotates adjacent pairs of the last rope_dim values of every head in place. x [rows, heads,
  // dim]; cos/sin [rows, rope_dim/2] fp32. `inverse` turns back.
  void (*rope)(ThreadPool&, bf16* x, int64_t rows, int64_t heads, int64_t dim, int64_t rope_dim,
               const float* cos, const float* sin, bool inverse);

  void (*mhc_mixes)(ThreadPool&, const MhcArgs&);
  // x[r] = bf16(sum_s pre[r, s] h[r, s])
  void (*mhc_collapse)(ThreadPool&, const bf16* h, const float* pre, int64_t rows, int streams,
                       int64_t hidden, bf16* x);
  // h[r, t] = bf16(post[r, t] y[r] + sum_s comb[r, s, t] h[r, s]), in place.
  void (*mhc_expand)(ThreadPool&, const bf16* y, const float* post, const float* comb, int64_t rows,
                     int streams, int64_t hidden, bf16* h);
  // tap[r] = bf16(mean over the streams); rows of `tap` are tap_stride apart.
  void (*stream_mean)(ThreadPool&, const bf16* h, int64_t rows, int streams, int64_t hidden,
                      bf16* tap, int64_t tap_stride);

  void (*attention)(ThreadPool&, const AttentionArgs&);

  // Ratio-2 pooling (spec 2.5.4): k, g [2 * groups, dim] fp32 -> out [groups, dim] bf16.
  void (*pool_pairs)(ThreadPool&, const float* k, const float* g, int64_t groups, int64_t dim,
                     bf16* out);
  // w[i] = bf16(w[i] * factor)
  void (*scale_bf16)(ThreadPool&, bf16* w, int64_t count, float factor);
  void (*index_scores)(ThreadPool&, const IndexScoreArgs&);
  void (*candidates)(ThreadPool&, const CandidateArgs&);
  void (*select)(ThreadPool&, const SelectArgs&);

  void (*gate)(ThreadPool&, const GateArgs&);
  void (*swiglu_q8)(ThreadPool&, const SwiGluArgs&);
  void (*combine)(ThreadPool&, const CombineArgs&);

  void (*engram_gather)(ThreadPool&, const EngramGatherArgs&);
  void (*engram_mix)(ThreadPool&, const EngramMixArgs&);

  void (*top_logits)(ThreadPool&, const TopLogitsArgs&);
};

}  // namespace deepinfer::kernels
