// What a trunk block and a draft stage have in common: mHC around two sublayers, the projections
// of attention, and the MoE. Internal to the model; rows are whatever the caller runs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/numeric.h"
#include "model/v41/model.h"
#include "model/v41/weights.h"
#include "model/v41/workspace.h"

namespace deepinfer::model::v41 {

// cos and sin [rows, rope_dim / 2].
struct Rotation {
  float* cos = nullptr;
  float* sin = nullptr;
};

class BlockPass {
 protected:
  BlockPass(const Model& model, ForwardContext& context);

  // Shows a tensor to the probe, if there is one, as "<block>.<leaf>" ("<leaf>" for an empty
  // block).
  void Observe(std::string_view block, std::string_view leaf, DType dtype,
               std::initializer_list<int64_t> shape, void* data) const;

  // rows_ copies of the embedding in every stream, the one-hot pre-mix (spec 2.1).
  void Embed(const int32_t* tokens);

  // mhc.cc: spec 2.2, 2.3. SublayerInput collapses the streams with `pre` and normalises into
  // kNormed; Mixes computes the sublayer's coefficients; AddSublayer expands y into the streams.
  bf16* SublayerInput(const float* pre, const bf16* norm);
  void Mixes(const BlockWeights& block, const MhcWeights& weights, std::string_view sublayer,
             float* pre);
  void AddSublayer(const bf16* y);
  // Collapsed and normalised rows for the head; `rows` are the last rows_ of h.
  bf16* FinalNorm(const bf16* h, const float* pre, int64_t rows, const bf16* norm);

  // attention.cc: spec 2.5.3, 2.5.7.
  kernels::Q8Rows QuantizeInput(const bf16* x);
  // Window KV of the rows, packed at `records`.
  // With `query_too` the projection to qr, of the same input, runs along.
  void WindowKv(const BlockWeights& block, const kernels::Q8Rows& x, const Rotation& rotation,
                bool query_too, uint8_t* records);
  // Normalised query latent qr [rows, q_lora_rank] in kQueryLatent and its quantised form.
  // `projected`: WindowKv has done the projection.
  kernels::Q8Rows QueryLatent(const BlockWeights& block, const kernels::Q8Rows& x, bool projected);
  bf16* Queries(const BlockWeights& block, const kernels::Q8Rows& latent, const Rotation& rotation);
  // Core attention over `lists` and output projection; returns y [rows, hidden].
  bf16* AttendAndProject(const BlockWeights& block, bf16* q, const kernels::AttentionQuery* lists,
                         const Rotation& rotation);

  // moe.cc: spec 2.6. The FFN half of a block, from its mixes to the expansion.
  void FeedForward(const BlockWeights& block, const uint8_t* is_image);

  kernels::Q8Rows Quantize(const kernels::RowsView& x, Slot codes, Slot scales);
  void FillRotation(const RopeTable& table, std::span<const int64_t> positions,
                    const Rotation& rotation) const;

  const Model& model_;
  const ModelConfig& config_;
  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  Workspace& workspace_;
  ForwardProbe* const probe_;

  int64_t rows_ = 0;
  bf16* h_ = nullptr;     // [rows, streams, hidden]
  float* pre_ = nullptr;  // [rows, streams]: collapses h_ for the next sublayer

 private:
  bf16* Moe(const BlockWeights& block, const bf16* x, const uint8_t* is_image);
  // Rows grouped by expert (moe.cc). A slot is one (row, expert) pair.
  struct ExpertSlots {
    int32_t* first = nullptr;   // [experts + 1]: an expert's first slot
    int32_t* rows = nullptr;    // [slots]: its row
    float* weights = nullptr;   // [slots, then rows]: routing weights, ones
    int32_t* of_row = nullptr;  // [rows, topk]: a row's slots, by ascending expert
  };
  ExpertSlots GroupByExpert(const MoeWeights& moe, const int32_t* ids, const float* weights);
  bf16* RunExperts(const MoeWeights& moe, const kernels::Q8Rows& x, const ExpertSlots& slots);
};

}  // namespace deepinfer::model::v41
