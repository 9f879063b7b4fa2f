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
  // Makes room for entries [0, size); new ones are uninitialised.
  void Resize(int64_t size);
  uint8_t* entry(int64_t i) {
    return blocks_[i / kEntriesPerBlock].get() + (i % kEntriesPerBlock) * entry_bytes_;
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

// The last tokens' window KV of one layer: record of position p in slot p mod slots.
struct WindowRing {
  int64_t slots = 0;
  std::vector<uint8_t> records;
  // Positions below this were never written (bounded replay) and are not read.
  int64_t first_valid = 0;
};

// State of one KV source (a layer with a compressor).
struct KvSourceState {
  KvSourceState(int64_t kv_bytes, int64_t index_bytes) : kv(kv_bytes), index_keys(index_bytes) {}
  EntryStore kv;
  EntryStore index_keys;
  // Open ratio-2 group: fp32 key and gate of one token [2 * head_dim]; meaningful when the length
  // is odd.
  std::vector<float> tail;
};

// Not thread-safe; one forward at a time. Belongs to the Model that made it and must not outlive
// it. After a Forward that returned an error the state is unusable.
class SequenceState {
 public:
  explicit SequenceState(const ModelConfig& config);

  // Tokens consumed so far = position of the next one.
  int64_t length() const { return length_; }
  // Bytes held by all caches, as allocated.
  size_t allocated_bytes() const;

 private:
  friend class Model;
  friend class ForwardPass;
  friend class DraftPass;

  int64_t length_ = 0;
  std::vector<KvSourceState> kv_sources;   // one a KV source, in layer order
  std::vector<WindowRing> windows;         // one a layer
  std::vector<int32_t> engram_history;     // last (max n-gram - 1) compressed ids, oldest first; -1 dead
  std::vector<WindowRing> draft_rings;     // one a draft stage
  std::vector<uint16_t> taps;              // bf16 taps of the positions the rings have not consumed
  int64_t taps_first = 0;                  // position of the first of them
  int64_t draft_length = 0;                // positions the draft rings hold
};

}  // namespace deepinfer::model::v41
