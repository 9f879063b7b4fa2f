// The DeepSeek-V4.1 model: weights of one checkpoint plus its forward pass.
// Sources: spec model-v41 sections 2 to 6. The blocks stand in one file each beside this one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "config/model_config.h"
#include "kernels/kernel_table.h"
#include "model/v41/sequence_state.h"
#include "tensor/tensor_view.h"

namespace deepinfer::model::v41 {

struct ModelWeights;
class Workspace;

// Sees and may replace intermediate tensors; for verification only. Called on the thread that
// called Forward, between kernels. Names are those of the golden captures ("layers.2.attn_q").
class ForwardProbe {
 public:
  virtual ~ForwardProbe() = default;
  virtual void Record(std::string_view name, const TensorView& value) = 0;
  // May overwrite `bytes` in place (same dtype and shape as Record would see) before they are used.
  virtual void Override(std::string_view name, TensorView shape, std::byte* bytes) = 0;
};

// One sequence's share of a forward: `tokens` follow the state's current length.
struct SequenceChunk {
  SequenceState* state = nullptr;
  std::span<const int32_t> tokens;
  // First absolute position that runs the decoder half. Rows before it only fill caches (bounded
  // decoder replay); 0 runs every layer on every token. Must be the same in every chunk of one
  // prompt, and at most the position of the last row that wants logits.
  int64_t decoder_start = 0;
  // Logits are wanted for the last `logits_rows` tokens of the chunk (0: none).
  int64_t logits_rows = 0;
  // Optional, one a token: 1 marks image-span tokens (dead for Engram, routed by bias_vl).
  std::span<const uint8_t> is_image;
};

// Threads and scratch memory of one caller. Reused over forwards; not thread-safe. Allocates only
// while shapes grow.
class ForwardContext {
 public:
  explicit ForwardContext(int threads);
  ~ForwardContext();
  ThreadPool& pool() { return pool_; }
  Workspace& workspace() { return *workspace_; }
  // Bytes of scratch memory held.
  size_t workspace_bytes() const;
  ForwardProbe* probe = nullptr;

 private:
  ThreadPool pool_;
  std::unique_ptr<Workspace> workspace_;
};

// Draft of one block (spec model-v41 section 6).
struct DraftResult {
  std::vector<int32_t> tokens;     // block_size drafts for positions length+1 ...
  std::vector<float> confidence;   // raw confidence head values, one a draft
  std::vector<float> logits;       // [block_size, vocab] after the Markov correction
};

// Immutable after Create and safe to use from several threads, each with its own ForwardContext
// and states. Views the source's bytes, which must outlive it.
class Model {
 public:
  // `engram_token_map`: compressed id of every vocabulary id (tokenizer/engram_token_map.h).
  // The source must have passed the tensor contract (loader/tensor_contract.h).
  static Result<std::unique_ptr<Model>> Create(const ModelConfig& config, const TensorSource& source,
                                               std::vector<int32_t> engram_token_map,
                                               const kernels::KernelTable& kernels);
  ~Model();

  const ModelConfig& config() const { return config_; }
  std::unique_ptr<SequenceState> NewSequence() const;

  // Runs the chunks as one batch. Row results do not depend on what else is in the batch, on how
  // prompts are cut into chunks, or on the number of threads. `logits` receives [rows, vocab] fp32,
  // rows in chunk order, where rows = the sum of logits_rows.
  // Errors: token id outside the vocabulary, context longer than max_position_embeddings.
  Status Forward(ForwardContext& context, std::span<const SequenceChunk> chunks,
                 std::vector<float>& logits) const;

  // Drafts a block after the sequence's last token, given `next`, the token just sampled for
  // position length(). Greedy. Needs taps of the last min(length, window) positions, which every
  // forward leaves in the state.
  Status Draft(ForwardContext& context, SequenceState& state, int32_t next, DraftResult& out) const;

 private:
  friend class ForwardPass;
  friend class DraftPass;
  Model(const ModelConfig& config, const kernels::KernelTable& kernels);

  ModelConfig config_;
  const kernels::KernelTable& kernels_;
  std::unique_ptr<ModelWeights> weights_;
};

}  // namespace deepinfer::model::v41
