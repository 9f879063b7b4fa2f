// One draft of the DSpark module. Internal to the model. Source: spec model-v41 section 6.
#pragma once

#include "model/v41/block_pass.h"

namespace deepinfer::model::v41 {

class DraftPass : public BlockPass {
 public:
  DraftPass(const Model& model, ForwardContext& context, SequenceState& state)
      : BlockPass(model, context), state_(state) {}

  // The state and the token were checked by Model::Draft.
  void Run(int32_t next, DraftResult& out);

 private:
  void RunStage(int stage);
  void Correct(int32_t next, const bf16* collapsed, DraftResult& out);

  SequenceState& state_;
  Rotation rotation_;
  uint8_t* records_ = nullptr;  // window records of the block, never stored
};

}  // namespace deepinfer::model::v41
