// Sequences over pooled memory, as a serving engine keeps them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/slab.h"
#include "model/v41/model.h"

namespace deepinfer::golden {

// Slots and blocks, given out once each. Slots are 0xff at first, window records of NaN; so are
// blocks unless `fill` is another byte.
class PagedMemory {
 public:
  PagedMemory(const ModelConfig& config, const model::v41::CacheOptions& options,
              uint8_t fill = 0xff)
      : layout(std::make_shared<const model::v41::CacheLayout>(
            *model::v41::CacheLayout::Create(config, options))),
        slots_(*Slab::Create(kSlots, layout->slot_bytes)),
        blocks_(*Slab::Create(kBlocks, layout->block_bytes)) {
    std::memset(slots_[0], 0xff, static_cast<size_t>(slots_.bytes()));
    std::memset(blocks_[0], fill, static_cast<size_t>(blocks_.bytes()));
  }

  std::unique_ptr<model::v41::SequenceState> NewState() {
    if (next_slot_ == kSlots) throw std::runtime_error("no slot is left");
    return std::make_unique<model::v41::SequenceState>(layout, slots_[next_slot_++]);
  }
  // A table for `tokens` positions: the blocks of `shared`, then fresh ones that do not lie in
  // order.
  std::vector<uint8_t*> NewTable(int64_t tokens, std::span<uint8_t* const> shared = {}) {
    std::vector<uint8_t*> table(shared.begin(), shared.end());
    while (std::ssize(table) * layout->options.block_tokens < tokens) {
      if (next_block_ == kBlocks) throw std::runtime_error("no block is left");
      table.push_back(blocks_[next_block_++ * 37 % kBlocks]);
    }
    return table;
  }
  std::vector<uint8_t> Bytes(const uint8_t* block) const {
    return {block, block + layout->block_bytes};
  }
  std::vector<uint8_t> Snapshot(const model::v41::SequenceState& state) const {
    std::vector<uint8_t> out(static_cast<size_t>(layout->slot_bytes));
    const Status status = state.SaveSnapshot(out);
    EXPECT_TRUE(status) << status.error().message;
    return out;
  }

  const std::shared_ptr<const model::v41::CacheLayout> layout;

 private:
  static constexpr int64_t kSlots = 24, kBlocks = 128;
  Slab slots_, blocks_;
  int64_t next_slot_ = 0, next_block_ = 0;
};

// Runs `chunk.tokens` in chunks of `size`; logits of the last chunk.logits_rows.
inline std::vector<float> RunChunks(const model::v41::Model& model,
                                    model::v41::ForwardContext& context,
                                    model::v41::SequenceChunk chunk, int64_t size) {
  std::vector<float> logits;
  const auto tokens = chunk.tokens;
  const int64_t total = std::ssize(tokens), wanted = chunk.logits_rows;
  for (int64_t at = 0; at < total;) {
    // The rows that want logits run together.
    const int64_t rest = total - wanted - at;
    const int64_t rows = rest > 0 ? std::min(size, rest) : wanted;
    chunk.tokens = tokens.subspan(at, rows);
    chunk.logits_rows = rest > 0 ? 0 : wanted;
    const Status status = model.Forward(context, {&chunk, 1}, logits);
    EXPECT_TRUE(status) << status.error().message;
    at += rows;
  }
  return logits;
}

}  // namespace deepinfer::golden
