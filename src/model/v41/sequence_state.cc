#include "model/v41/sequence_state.h"

namespace deepinfer::model::v41 {

void EntryStore::Grow(int64_t size) {
  while (static_cast<int64_t>(blocks_.size()) * kEntriesPerBlock < size) {
    blocks_.emplace_back(new uint8_t[kEntriesPerBlock * entry_bytes_]);
    pointers_.push_back(blocks_.back().get());
  }
  size_ = size;
}

SequenceState::SequenceState(const ModelConfig& config, bool with_draft) {
  for (const int layer : config.kv_source_layers) {
    const bool pools = config.roles[layer].ratio == 2;
    kv_sources_.emplace_back(config.kv_entry_bytes(), config.index_entry_bytes(),
                             pools ? 2 * config.head_dim : 0);
  }
  for (int layer = 0; layer < config.num_layers; ++layer) {
    windows_.emplace_back(config.sliding_window, config.window_entry_bytes());
  }
  engram_history_.assign(config.engram_layers.empty() ? 0 : config.engram_max_ngram - 1, -1);
  for (int stage = 0; with_draft && stage < config.num_draft_stages; ++stage) {
    draft_rings_.emplace_back(config.sliding_window, config.window_entry_bytes());
  }
}

size_t SequenceState::global_kv_bytes() const {
  size_t bytes = 0;
  for (const KvSourceState& source : kv_sources_) {
    bytes += source.kv.allocated_bytes() + source.index_keys.allocated_bytes();
  }
  return bytes;
}

size_t SequenceState::fixed_bytes() const {
  size_t bytes = engram_history_.size() * sizeof(int32_t);
  for (const KvSourceState& source : kv_sources_) bytes += source.tail.size() * sizeof(float);
  for (const WindowRing& ring : windows_) bytes += ring.records.size();
  for (const WindowRing& ring : draft_rings_) bytes += ring.records.size();
  return bytes;
}

}  // namespace deepinfer::model::v41
