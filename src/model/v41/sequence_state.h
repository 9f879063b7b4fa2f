// What one sequence keeps between forwards: packed global KV, window rings, compressor tails,
// Engram history, draft rings. Source: spec model-v41 section 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/model_config.h"

namespace deepinfer::model::v41 {

// Append-only array of fixed-size records, in blocks that never move, so that growing costs no
// copy and the memory follows the number of entries.
class EntryStore {
 public:
  static constexpr int64_t kEntriesPerBlock = 256;

  explicit EntryStore(int64_t entry_bytes) : entry_bytes_(entry_bytes) {}
  int64_t size() const { return size_; }
  int64_t entry_bytes() const { return entry_bytes_; }
  // Makes room for entries [0, size); new ones are uninitialised. size >= size().
  void Grow(int64_t size);
  uint8_t* entry(int64_t i) {
    return blocks_[i / kEntriesPerBlock].get() + i % kEntriesPerBlock * entry_bytes_;
  }
  // One pointer a block, for kernels: entry i is in block i / kEntriesPerBlock.
  const uint8_t* const* blocks() const { return pointers_.data(); }
  size_t allocated_bytes() const { return blocks_.size() * kEntriesPerBlock * entry_bytes_; }

 private:
  int64_t entry_bytes_;
  int64_t size_ = 0;
  std::vector<std::unique_ptr<uint8_t[]>> blocks_;
  std::vector<const uint8_t*> pointers_;
};

// The last positions' window KV of one layer: the record of position p is in slot p mod slots.
struct WindowRing {
  WindowRing(int64_t slots, int64_t entry_bytes)
      : slots(slots), entry_bytes(entry_bytes), records(slots * entry_bytes) {}
  int64_t slots;
  int64_t entry_bytes;
  std::vector<uint8_t> records;
  // Positions below this were never written (bounded replay) and are not read.
  int64_t first_valid = 0;
};

// State of one KV source (a layer with a compressor).
struct KvSourceState {
  KvSourceState(int64_t kv_bytes, int64_t index_bytes, int64_t tail_values)
      : kv(kv_bytes), index_keys(index_bytes), tail(tail_values) {}
  EntryStore kv;
  EntryStore index_keys;
  // The open ratio-2 group: fp32 key, then gate, of its one token [2 * head_dim]. Meaningful while
  // the length is odd; empty for ratio 1.
  std::vector<float> tail;
};

// Not thread-safe; one forward at a time. After a Forward that returned an error it is unchanged.
class SequenceState {
 public:
  // `with_draft` keeps the rings of the draft stages, which every forward then fills.
  SequenceState(const ModelConfig& config, bool with_draft);

  // Tokens consumed so far = position of the next one.
  int64_t length() const { return length_; }
  bool with_draft() const { return !draft_rings_.empty(); }
  // First position the draft rings hold; meaningful with_draft().
  int64_t draft_first_valid() const { return draft_rings_.front().first_valid; }
  // Bytes of the growing caches (global KV), and of what is fixed a sequence (windows, tails,
  // draft rings), as allocated.
  size_t global_kv_bytes() const;
  size_t fixed_bytes() const;

 private:
  friend class ForwardPass;
  friend class DraftPass;
  friend class SyntheticContext;

  int64_t length_ = 0;
  std::vector<KvSourceState> kv_sources_;  // in the order of config.kv_source_layers
  std::vector<WindowRing> windows_;        // one a layer
  std::vector<int32_t> engram_history_;    // compressed ids of the last (max n-gram - 1) tokens,
                                           // oldest first; -1: dead or before the start
  std::vector<WindowRing> draft_rings_;    // one a draft stage
};

}  // namespace deepinfer::model::v41
