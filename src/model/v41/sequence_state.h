// What one sequence keeps between forwards: packed global KV in blocks; window rings, compressor
// tails, Engram history and draft rings in its slot. Source: spec model-v41 section 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "config/model_config.h"
#include "model/v41/cache_layout.h"

namespace deepinfer::model::v41 {

// Not thread-safe; one forward at a time. After a Forward that returned an error it is unchanged.
class SequenceState {
 public:
  // An empty sequence with memory of its own, whose blocks are allocated as it grows. `with_draft`
  // keeps the rings of the draft stages, which every forward then fills, and makes room for rolling
  // back a block of drafts.
  SequenceState(const ModelConfig& config, bool with_draft);
  // An empty sequence in the owner's memory: `slot` has layout->slot_bytes bytes, aligned to
  // kCacheAlignment, and outlives it. It has no blocks until ViewBlocks.
  SequenceState(std::shared_ptr<const CacheLayout> layout, uint8_t* slot);
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;

  const CacheLayout& layout() const { return *layout_; }
  // Tokens consumed so far = position of the next one.
  int64_t length() const { return header_->length; }
  bool with_draft() const { return layout_->num_draft_stages > 0; }
  // First position the draft rings hold; meaningful with_draft().
  int64_t draft_first_valid() const { return header_->decoder_first_valid; }

  // Positions whose global KV fits into the present blocks. Blocks of its own grow in a forward.
  int64_t block_capacity() const { return std::ssize(blocks_) * layout_->options.block_tokens; }
  bool owns_blocks() const { return owned_slot_ != nullptr; }
  // The blocks of a sequence in the owner's memory: position p lies in blocks[p / block_tokens],
  // each of layout().block_bytes bytes aligned to kCacheAlignment. The table is viewed, not copied;
  // it and the blocks outlive the next call or the last forward. !owns_blocks().
  void ViewBlocks(std::span<uint8_t* const> blocks);

  // Makes the sequence empty: as constructed, but for the blocks, which stay.
  void Clear();

  // Takes the last tokens back, as if they had never been forwarded, so that `length` are left.
  // Errors, which change nothing: a length beyond length(), or more than the layout's max_rollback
  // below the longest the sequence was since Clear, a restored snapshot or the start of a replay.
  Status Rollback(int64_t length);

  // Copies what the slot holds. Together with the blocks' content of positions below length() it
  // goes on exactly as this sequence does. Errors: `out` is not layout().slot_bytes long.
  Status SaveSnapshot(std::span<uint8_t> out) const;
  // Becomes the sequence that was saved; the blocks hold, or will hold before the next forward, its
  // global KV. Errors, which change nothing: a snapshot of another size or layout; one longer than
  // the blocks of its own.
  Status RestoreSnapshot(std::span<const uint8_t> snapshot);

  // Bytes of the present blocks, and of the slot.
  size_t global_kv_bytes() const { return blocks_.size() * layout_->block_bytes; }
  size_t fixed_bytes() const { return static_cast<size_t>(layout_->slot_bytes); }

 private:
  friend class ForwardPass;
  friend class DraftPass;
  friend class SyntheticContext;

  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  using Memory = std::unique_ptr<uint8_t[], Free>;
  static Memory Allocate(int64_t bytes);

  // Blocks for positions below `length`. Only blocks of its own can be too few.
  void Reserve(int64_t length);
  // The first token will have `position`, without windows before it.
  void StartAt(int64_t position);
  // Positions below `length` were forwarded.
  void Advance(int64_t length);

  // Record j of a KV source (an index into kv_source_layers).
  uint8_t* KvEntry(int64_t source, int64_t j) const {
    const KvSourceLayout& s = layout_->sources[source];
    return blocks_[j / s.entries_per_block] + s.kv_offset +
           j % s.entries_per_block * layout_->kv_bytes;
  }
  uint8_t* IndexKey(int64_t source, int64_t j) const {
    const KvSourceLayout& s = layout_->sources[source];
    return blocks_[j / s.entries_per_block] + s.index_offset +
           j % s.entries_per_block * layout_->index_bytes;
  }
  // Ring of a layer, or of draft stage i as ring num_layers + i; and a position's record in it.
  uint8_t* Ring(int64_t ring) const {
    return slot_ + layout_->rings_offset + ring * layout_->ring_bytes();
  }
  uint8_t* WindowRecord(int64_t ring, int64_t position) const {
    return Ring(ring) + position % layout_->ring_slots * layout_->window_bytes;
  }
  // fp32 key, then gate, [2, head_dim], of an even position in a ratio-2 source: the open group's
  // while it is the last one.
  float* Tail(int64_t source, int64_t position) const {
    return reinterpret_cast<float*>(slot_ + layout_->sources[source].tail_offset) +
           position / 2 % layout_->tail_slots * 2 * layout_->head_dim;
  }
  // Compressed id of a position >= 0, kDeadToken if it takes no part. With Engram layers.
  int32_t& History(int64_t position) const {
    return reinterpret_cast<int32_t*>(slot_ +
                                      layout_->history_offset)[position % layout_->history_slots];
  }

  std::shared_ptr<const CacheLayout> layout_;
  Memory owned_slot_;
  std::vector<Memory> owned_blocks_;
  std::vector<uint8_t*> owned_table_;
  uint8_t* slot_;
  SlotHeader* header_;
  std::span<uint8_t* const> blocks_;
};

}  // namespace deepinfer::model::v41
