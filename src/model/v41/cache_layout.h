// Where the records of a sequence stand: what grows with the context in blocks of global KV, which
// sequences may share; the rest in the sequence's slot. Source: spec model-v41 section 4.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "config/model_config.h"

namespace deepinfer::model::v41 {

// First byte of what must not share cache lines with its neighbour.
inline constexpr int64_t kCacheAlignment = 64;

struct CacheOptions {
  int64_t block_tokens = 256;  // even, so that a ratio-2 group never lies in two blocks
  bool with_draft = false;     // keep the rings of the draft stages
  // Most tokens that SequenceState::Rollback can take back: 0 to the window.
  int64_t max_rollback = 0;
};

// A KV source's part of a block, and of a slot. All offsets are in bytes.
struct KvSourceLayout {
  int ratio = 1;                  // tokens an entry
  int64_t entries_per_block = 0;  // block_tokens / ratio
  int64_t kv_offset = 0;          // in a block: KV records, then
  int64_t index_offset = 0;       // index keys
  int64_t tail_offset = 0;        // in a slot; ratio 2 alone
};

// Immutable, thread-safe.
struct CacheLayout {
  // Errors: an option outside its range.
  static Result<CacheLayout> Create(const ModelConfig& config, const CacheOptions& options);

  CacheOptions options;
  int64_t kv_bytes = 0, index_bytes = 0, window_bytes = 0;  // of a record
  std::vector<KvSourceLayout> sources;                      // in the order of kv_source_layers
  // A block: the records of all sources for block_tokens consecutive positions.
  int64_t block_bytes = 0;

  // A slot: a header (SequenceState's), then rings of ring_slots window records, one a layer, then
  // one a draft stage; tails; Engram history. Everything that a rollback must find again is kept
  // max_rollback positions longer than the forward needs it.
  int64_t ring_slots = 0;  // the record of position p is in slot p mod ring_slots
  int num_layers = 0;
  int num_draft_stages = 0;  // 0 without draft rings
  int64_t rings_offset = 0;
  // Keys and gates of the first tokens of ratio-2 groups, fp32 [tail_slots, 2, head_dim] a source:
  // those of the even position p in slot p / 2 mod tail_slots.
  int64_t tail_slots = 0, head_dim = 0;
  // Compressed ids of the last tokens, int32: that of position p in slot p mod history_slots. 0
  // slots without Engram.
  int64_t history_offset = 0, history_slots = 0;
  int64_t slot_bytes = 0;  // a multiple of kCacheAlignment
  // Differs between layouts whose slots cannot be copied into each other.
  uint64_t slot_tag = 0;

  int64_t ring_bytes() const { return ring_slots * window_bytes; }
};

// What every slot begins with. A slot is moved and stored as bytes.
struct SlotHeader {
  uint64_t tag = 0;                 // CacheLayout::slot_tag
  int64_t length = 0;               // tokens consumed so far
  int64_t first_valid = 0;          // windows of the encoder half hold nothing below this position,
  int64_t decoder_first_valid = 0;  // those of the decoder half and the draft rings below this one
  int64_t rollback_floor = 0;       // what a rollback to a shorter length needs may be overwritten
};

}  // namespace deepinfer::model::v41
