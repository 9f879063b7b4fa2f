// The three kinds of memory a sequence uses, as ids. Source: spec model-v41 section 4.
#pragma once

#include <cstdint>

#include "cache/counted_pool.h"

namespace deepinfer::cache {

// A block holds everything that grows with the context for block_tokens consecutive positions:
// main KV and index keys of every KV source. Position p of a sequence lies in its block
// p / block_tokens. block_tokens is even, so that a ratio-2 group never lies in two blocks.
struct BlockKind {};
using BlockId = int32_t;
using BlockRef = Handle<BlockKind>;
using BlockPool = CountedPool<BlockKind>;
inline constexpr BlockId kNoBlock = -1;

// A slot holds what a running sequence needs besides: window rings, compressor tails, Engram
// history, draft rings, the newest token. Slots are never shared.
struct SlotKind {};
using SlotId = int32_t;
using SlotRef = Handle<SlotKind>;
using SlotPool = CountedPool<SlotKind>;
inline constexpr SlotId kNoSlot = -1;

// A snapshot is a copy of a slot's content at a block boundary.
struct SnapshotKind {};
using SnapshotId = int32_t;
using SnapshotRef = Handle<SnapshotKind>;
using SnapshotPool = CountedPool<SnapshotKind>;
inline constexpr SnapshotId kNoSnapshot = -1;

// Blocks that hold `tokens` positions.
constexpr int64_t BlocksFor(int64_t tokens, int64_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace deepinfer::cache
