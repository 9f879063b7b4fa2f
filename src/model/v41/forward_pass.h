// One forward of the trunk over a batch of sequence chunks. Internal to the model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/v41/block_pass.h"

namespace deepinfer::model::v41 {

// One sequence's rows. `row` and `position` move when rows before decoder_start stop; the chunk's
// window records stay where they were written.
struct Segment {
  SequenceState* state = nullptr;
  int64_t row = 0;             // first running row
  int64_t rows = 0;            // running rows
  int64_t position = 0;        // absolute position of the first running row
  int64_t chunk_row = 0;       // first row in the whole batch
  int64_t chunk_position = 0;  // absolute position of the chunk's first token
  int64_t chunk_rows = 0;
  int64_t decoder_start = 0;
  int64_t write_floor = 0;
  int64_t logits_rows = 0;

  int64_t end() const { return chunk_position + chunk_rows; }
};

class ForwardPass : public BlockPass {
 public:
  ForwardPass(const Model& model, ForwardContext& context) : BlockPass(model, context) {}

  // The chunks were checked by Model::Forward.
  void Run(std::span<const SequenceChunk> chunks, HeadOutput& head);

 private:
  // forward_pass.cc
  void Start(std::span<const SequenceChunk> chunks);
  void OpenState(const SequenceChunk& chunk) const;
  void RunLayer(int layer);
  bf16* Attention(int layer, const kernels::Q8Rows& x, const bf16* attn_in);
  const kernels::AttentionQuery* BuildLists(int layer);
  void StopEncoderRows(kernels::Q8Rows& x, bf16* attn_in);
  // Where the running layer's window records of a segment start, and the position of the first.
  struct ChunkRecords {
    int64_t row = 0, position = 0;
  };
  ChunkRecords RecordsOf(int layer, const Segment& segment) const;
  // First position whose window KV a segment's rows can read in a layer.
  int64_t FirstValid(int layer, const Segment& segment) const;
  void CommitWindows(int layer);
  void RecordTap(int layer);
  void Finish();
  void Logits(HeadOutput& head);

  // engram.cc
  void Engram(int layer);
  void HashRows(int table, int64_t* ids) const;
  // compressor.cc
  void Compress(int layer, const bf16* x);
  void PoolGroups(int layer, const bf16* x, bf16* latent);
  // indexer.cc
  void SelectEntries(int layer, const kernels::Q8Rows& latent, const bf16* attn_in);
  void SelectAll(const int64_t* visible);
  void SelectSegment(int layer, const Segment& segment, const bf16* q, const bf16* weights,
                     const int64_t* visible);
  kernels::BlockLists CandidatesOf(int64_t row) const;
  void ObserveScores(int layer, int64_t row, int64_t rows, const float* scores, int64_t stride,
                     int64_t entries);
  void ObserveSelection(const BlockWeights& block, const int64_t* visible, int64_t entries);
  // dspark.cc
  void FillDraftRings();

  // Compressed KV, or index keys, of a KV source layer as kernels see them.
  kernels::EntryBlocks KvEntries(const Segment& segment, int layer) const;
  kernels::EntryBlocks IndexKeys(const Segment& segment, int layer) const;
  Rotation& RotationOf(int layer) {
    return config_.roles[layer].ratio == 0 ? window_ : compressed_;
  }
  int64_t SourceIndex(int layer) const;

  std::span<Segment> segments_;
  int64_t* positions_ = nullptr;   // [rows]
  uint8_t* image_rows_ = nullptr;  // [rows] or null
  Rotation window_, compressed_;   // of the running rows
  // Compressed ids of the batch, dead tokens marked; rows of the start, which never move.
  int32_t* compressed_tokens_ = nullptr;
  int64_t batch_rows_ = 0;             // rows at the start
  uint8_t* window_records_ = nullptr;  // [batch rows] records of the running layer
  bf16* taps_ = nullptr;               // [rows, taps * hidden] or null
  // The running selection list: [rows, index_topk] and [rows].
  int32_t* selected_ = nullptr;
  int64_t* selected_count_ = nullptr;
  // Candidate blocks of the running rows: [rows, candidate_topk_blocks] and [rows].
  int32_t* candidate_blocks_ = nullptr;
  int64_t* candidate_count_ = nullptr;
};

}  // namespace deepinfer::model::v41
