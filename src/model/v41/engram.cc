// Engram: hashed n-gram rows mixed into the streams. Source: spec model-v41 section 2.4.
#include <algorithm>
#include <vector>

#include "model/v41/engram_hash.h"
#include "model/v41/forward_pass.h"

namespace deepinfer::model::v41 {

using kernels::Q8Rows;

// Table rows of every running row. A row's lookback is the chunk before it, then the history, then
// nothing: dead tokens.
void ForwardPass::HashRows(int table, int64_t* ids) const {
  const int64_t columns = config_.engram_columns();
  const int64_t size = config_.engram_max_ngram;
  std::vector<int32_t> recent(size);
  for (const Segment& segment : segments_) {
    for (int64_t r = segment.row; r < segment.row + segment.rows; ++r) {
      const int64_t offset = positions_[r] - segment.chunk_position;  // in the chunk
      for (int64_t k = 0; k < size; ++k) {
        recent[k] = k <= offset          ? compressed_tokens_[segment.chunk_row + offset - k]
                    : k <= positions_[r] ? segment.state->History(positions_[r] - k)
                                         : kDeadToken;
      }
      model_.engram_hash_->Rows(table, recent, ids + r * columns);
    }
  }
}

void ForwardPass::Engram(int layer) {
  const BlockWeights& block = model_.weights_->layers[layer];
  const int table = config_.roles[layer].engram;
  const EngramWeights& weights = model_.weights_->engrams[table];
  const int64_t columns = config_.engram_columns(), dim = config_.engram_head_dim;
  const int64_t streams = config_.hc_mult, hidden = config_.hidden_size;
  Observe(block.name, "engram_in", DType::kBF16, {rows_, streams, hidden}, h_);
  auto* ids = workspace_.Get<int64_t>(Slot::kEngramIds, rows_ * columns);
  auto* rows = workspace_.Get<bf16>(Slot::kEngramRows, rows_ * columns * dim);
  auto* kv = workspace_.Get<bf16>(Slot::kEngramKv, rows_ * (streams + 1) * hidden);
  HashRows(table, ids);
  Observe(block.name, "engram_hash_ids", DType::kI64, {rows_, columns}, ids);
  kernels_.engram_gather(pool_, {.rows = rows_,
                                 .columns = columns,
                                 .dim = dim,
                                 .row_ids = ids,
                                 .codes = weights.codes,
                                 .scales = weights.scales,
                                 .out = rows});
  Observe(block.name, "engram_rows", DType::kBF16, {rows_, columns, dim}, rows);
  const Q8Rows quantized = Quantize({rows, rows_, columns * dim, columns * dim}, Slot::kEngramCodes,
                                    Slot::kEngramScales);
  kernels_.Multiply(pool_, kernels::MakeGemm(quantized, weights.wkv, kv, (streams + 1) * hidden));
  Observe(block.name, "engram_kv", DType::kBF16, {rows_, (streams + 1) * hidden}, kv);
  kernels_.engram_mix(pool_, {.rows = rows_,
                              .hidden = hidden,
                              .streams = config_.hc_mult,
                              .kv = kv,
                              .q_weight = weights.q_weight,
                              .k_weight = weights.k_weight,
                              .dead = image_rows_,
                              .norm_eps = config_.rms_norm_eps,
                              .h = h_});
  Observe(block.name, "engram_out", DType::kBF16, {rows_, streams, hidden}, h_);
}

}  // namespace deepinfer::model::v41
