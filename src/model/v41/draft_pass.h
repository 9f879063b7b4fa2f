// One batch of drafts by the DSpark module. Internal to the model. Source: spec model-v41
// section 6.
#pragma once

#include "model/v41/block_pass.h"

namespace deepinfer::model::v41 {

class DraftPass : public BlockPass {
 public:
  DraftPass(const Model& model, ForwardContext& context, std::span<const DraftInput> inputs,
            const DraftSampler& sampler, DraftOutput& out)
      : BlockPass(model, context), inputs_(inputs), sampler_(sampler), out_(out) {}

  // The inputs were checked by Model::Draft.
  void Run();

 private:
  // A sequence whose chain goes on: where its block's logits start.
  struct ChainRow {
    int64_t sequence = 0;
    float* logits = nullptr;  // of the running step
  };

  void Start();
  void RunStage(int stage);
  const kernels::AttentionQuery* BuildLists(int stage);
  void DraftGroup(int64_t first, int64_t count, const bf16* collapsed, const bf16* normed);
  void RunStep(int64_t step, std::span<const ChainRow> chain, const bf16* collapsed);

  std::span<const DraftInput> inputs_;
  const DraftSampler& sampler_;
  DraftOutput& out_;
  int64_t block_ = 0;  // rows of a sequence
  Rotation rotation_;
  uint8_t* records_ = nullptr;  // window records of the blocks, never stored
};

}  // namespace deepinfer::model::v41
