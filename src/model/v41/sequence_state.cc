#include "model/v41/sequence_state.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace deepinfer::model::v41 {
namespace {

// A configuration in range makes a layout with these options.
std::shared_ptr<const CacheLayout> PrivateLayout(const ModelConfig& config, bool with_draft) {
  const int64_t drafts = with_draft ? config.draft_block_size : 0;
  const CacheOptions options{.with_draft = with_draft,
                             .max_rollback = std::min(drafts, config.sliding_window)};
  return std::make_shared<const CacheLayout>(*CacheLayout::Create(config, options));
}

}  // namespace

SequenceState::Memory SequenceState::Allocate(int64_t bytes) {
  auto* data = static_cast<uint8_t*>(std::aligned_alloc(kCacheAlignment, bytes));
  if (data == nullptr) throw std::bad_alloc();
  return Memory(data);
}

SequenceState::SequenceState(const ModelConfig& config, bool with_draft)
    : layout_(PrivateLayout(config, with_draft)),
      owned_slot_(Allocate(layout_->slot_bytes)),
      slot_(owned_slot_.get()) {
  Clear();
}

SequenceState::SequenceState(std::shared_ptr<const CacheLayout> layout, uint8_t* slot)
    : layout_(std::move(layout)), slot_(slot) {
  Clear();
}

void SequenceState::Clear() {
  header_ = new (slot_) SlotHeader{.tag = layout_->slot_tag};
  // Rings are never read below first_valid. Tails are, by a replay that starts inside a group,
  // whose entry is not written then.
  for (size_t i = 0; i < layout_->sources.size(); ++i) {
    if (layout_->sources[i].ratio != 2) continue;
    std::fill_n(Tail(static_cast<int64_t>(i), 0), layout_->tail_slots * 2 * layout_->head_dim,
                0.0f);
  }
}

void SequenceState::ViewBlocks(std::span<uint8_t* const> blocks) { blocks_ = blocks; }

void SequenceState::Reserve(int64_t length) {
  if (length <= block_capacity()) return;
  while (std::ssize(owned_table_) * layout_->options.block_tokens < length) {
    owned_blocks_.push_back(Allocate(layout_->block_bytes));
    owned_table_.push_back(owned_blocks_.back().get());
  }
  blocks_ = owned_table_;
}

void SequenceState::StartAt(int64_t position) {
  header_->length = position;
  header_->first_valid = header_->decoder_first_valid = header_->rollback_floor = position;
}

void SequenceState::Advance(int64_t length) {
  header_->length = length;
  header_->rollback_floor =
      std::max(header_->rollback_floor, length - layout_->options.max_rollback);
}

Status SequenceState::Rollback(int64_t length) {
  if (length < header_->rollback_floor || length > header_->length) {
    return MakeError(ErrorCode::kInvalidArgument, "rollback to length {} is outside [{}, {}]",
                     length, header_->rollback_floor, header_->length);
  }
  header_->length = length;
  return {};
}

Status SequenceState::SaveSnapshot(std::span<uint8_t> out) const {
  if (std::ssize(out) != layout_->slot_bytes) {
    return MakeError(ErrorCode::kInvalidArgument, "a snapshot needs {} bytes, not {}",
                     layout_->slot_bytes, out.size());
  }
  std::memcpy(out.data(), slot_, out.size());
  return {};
}

Status SequenceState::RestoreSnapshot(std::span<const uint8_t> snapshot) {
  if (std::ssize(snapshot) != layout_->slot_bytes) {
    return MakeError(ErrorCode::kInvalidArgument, "a snapshot has {} bytes, not {}",
                     layout_->slot_bytes, snapshot.size());
  }
  SlotHeader saved;
  std::memcpy(&saved, snapshot.data(), sizeof(saved));
  if (saved.tag != layout_->slot_tag) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the snapshot has the layout {:016x}, the sequence {:016x}", saved.tag,
                     layout_->slot_tag);
  }
  if (owns_blocks() && saved.length > block_capacity()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the snapshot is of {} tokens; the sequence's own blocks hold {}",
                     saved.length, block_capacity());
  }
  std::memcpy(slot_, snapshot.data(), snapshot.size());
  return {};
}

}  // namespace deepinfer::model::v41
