// Scratch memory of one ForwardContext: named buffers that only grow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace deepinfer::model::v41 {

// One name a tensor that lives between kernels. A buffer's pointer stays valid until a larger
// request for the same name.
enum class Slot {
  kSegments,
  kTokens,
  kCompressedTokens,
  kPositions,
  kImageRows,
  kWindowCos,
  kWindowSin,
  kCompressedCos,
  kCompressedSin,
  kGroupPositions,
  kGroupCos,
  kGroupSin,
  kStreams,  // h bf16 [rows, streams, hidden]
  kPre,      // pre-mix for the next collapse f32 [rows, streams]
  kAttnPre,
  kPost,
  kComb,
  kCollapsed,
  kNormed,  // sublayer input bf16 [rows, hidden]
  kNormedCodes,
  kNormedScales,
  kQueryLatent,  // qr
  kQueryLatentCodes,
  kQueryLatentScales,
  kQuery,
  kKv,
  kWindowRecords,  // packed window KV of the running chunk
  kWindowViews,
  kEntryViews,
  kQueryLists,
  kRecordPointers,
  kAttnOut,
  kAttnLatent,  // wo_a output
  kAttnLatentCodes,
  kAttnLatentScales,
  kSublayerOut,
  kCompressorK,
  kCompressorG,
  kPairsK,
  kPairsG,
  kLatent,
  kIndexKey,
  kIndexQuery,
  kIndexWeights,
  kIndexScores,
  kVisible,
  kCandidateBlocks,
  kCandidateCount,
  kSelected,
  kSelectedCount,
  kGateLogits,
  kGateScores,
  kExpertIds,
  kExpertWeights,
  kExpertA,
  kExpertB,
  kExpertUCodes,
  kExpertUScales,
  kExpertOut,
  kExpertRows,
  kExpertRowWeights,
  kExpertFirst,
  kExpertNext,
  kExpertFound,
  kExpertSlots,
  kGemmItems,
  kEngramIds,
  kEngramRows,
  kEngramCodes,
  kEngramScales,
  kEngramKv,
  kTaps,
  kTapCodes,
  kTapScales,
  kMainOut,
  kMainCodes,
  kMainScales,
  kHeadIn,
  kDraftRecords,
  kDraftHeadRows,
  kDraftLogits,
  kDraftChain,
  kDraftFeatures,  // collapsed row and Markov embedding, the confidence head's input
  kDraftConfidence,
  kMarkov,
  kCount,
};

class Workspace {
 public:
  // At least `count` elements, uninitialised beyond what an earlier request of the same slot wrote;
  // a growing request keeps nothing. Throws std::bad_alloc, which leaves the
  // buffer as it was.
  template <typename T>
  T* Get(Slot slot, int64_t count) {
    Buffer& buffer = buffers_[static_cast<size_t>(slot)];
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (buffer.bytes < bytes) {
      const size_t rounded = (bytes + 63) / 64 * 64;
      auto* data = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
      if (data == nullptr) throw std::bad_alloc();
      buffer.data.reset(data);
      buffer.bytes = rounded;
    }
    return reinterpret_cast<T*>(buffer.data.get());
  }

  size_t bytes() const {
    size_t sum = 0;
    for (const Buffer& buffer : buffers_) sum += buffer.bytes;
    return sum;
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  struct Buffer {
    std::unique_ptr<std::byte, Free> data;
    size_t bytes = 0;
  };
  std::array<Buffer, static_cast<size_t>(Slot::kCount)> buffers_;
};

}  // namespace deepinfer::model::v41
