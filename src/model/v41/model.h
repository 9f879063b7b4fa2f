// The DeepSeek-V4.1 model: weights of one checkpoint plus its forward pass.
// Sources: spec model-v41 sections 2 to 6. The blocks stand in one file each beside this one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

class EngramHash;
class RopeTable;
class Workspace;
struct ModelWeights;

// Sees and may replace intermediate tensors; for verification only. Called on the thread that
// called Forward, between kernels. Names are those of the golden captures ("layers.2.attn_q",
// "mtp.0.qr", "logits"; the last only where all logits are computed).
class ForwardProbe {
 public:
  virtual ~ForwardProbe() = default;
  // `bytes` is what `value` views: writing there changes what the forward goes on with.
  virtual void OnTensor(std::string_view name, const TensorView& value, std::byte* bytes) = 0;
  // Slots of the window part of every key list; empty ones only move the cut into softmax blocks.
  // The release's prefill uses min(prompt length, window) of them, so comparing with its captures
  // of prompts shorter than the window needs that number; everything else uses `window`, which
  // does not depend on the prompt.
  virtual int64_t WindowSlots(int64_t window) { return window; }
};

// One sequence's share of a forward: `tokens` follow the state's current length, or start at
// replay_start while that is 0.
struct SequenceChunk {
  SequenceState* state = nullptr;
  std::span<const int32_t> tokens;
  // First absolute position that runs the decoder half. Rows before it only fill caches (bounded
  // decoder replay, spec section 5.2); 0 runs every layer on every token. Must be the same in
  // every chunk of one prompt, and at most the position of the first row that wants logits.
  int64_t decoder_start = 0;
  // Logits are wanted for the last `logits_rows` tokens of the chunk (0: none).
  int64_t logits_rows = 0;
  // Empty, or one a token: 1 marks image-span tokens (dead for Engram, routed by bias_vl).
  std::span<const uint8_t> is_image = {};
  // Encoder replay after a prefix hit (spec section 5.3): the blocks of an empty state hold the
  // global KV of the positions below write_floor, but it has no windows. It starts at replay_start
  // <= write_floor; window attention reads nothing below; no entry is written whose last token lies
  // below write_floor. Both must be the same in every chunk of the sequence, and 0 without a hit.
  int64_t replay_start = 0;
  int64_t write_floor = 0;
  // Where a state starts at replay_start: the tokens right before it that Engram looks back to, max
  // n-gram - 1 of them (fewer only if replay_start is less), in order; -1 for image-span tokens.
  std::span<const int32_t> lookback = {};

  int64_t start() const { return state->length() > 0 ? state->length() : replay_start; }
};

// What a forward gives of the rows that want logits, in chunk order.
struct HeadOutput {
  // 0: every logit of a row. Else its best alone, at most kernels::kMaxTopLogits and the
  // vocabulary, and the whole row is never written.
  int64_t topk = 0;
  std::vector<float> logits = {};  // [rows, vocab], or [rows, topk] by falling logit, NaN first
  std::vector<int32_t> ids = {};   // [rows, topk], ties by lowest id
};

// Threads and scratch memory of one caller. Reused over forwards; not thread-safe. Allocates only
// while shapes grow.
class ForwardContext {
 public:
  // threads >= 1
  explicit ForwardContext(int threads, const ThreadPoolOptions& options = {});
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

// One draw of a draft chain: the logits of a draft after the Markov correction, [vocab].
struct DraftDraw {
  int64_t sequence = 0;  // index into the inputs
  int64_t step = 0;      // drafts of this block before it
  int64_t position = 0;  // absolute, of the token to draw
  std::span<const float> logits;
  int worker = 0;  // of the context's pool; a worker makes one draw at a time
};
// The drafted token; any id outside the vocabulary (-1, say) ends the sequence's drafts before it.
// Called on the pool's threads, for different sequences at once, for one in the order of its steps.
// Must not throw.
using DraftSampler = std::function<int32_t(const DraftDraw&)>;

// The largest logit, ties to the lowest id. NaN is nothing.
int32_t GreedyDraft(const DraftDraw& draw);

// One sequence's share of a draft.
struct DraftInput {
  const SequenceState* state = nullptr;
  int32_t next = 0;  // the token just sampled for position state->length()
  // Drafts wanted, 1 to draft_block_size. The stages always run the whole block: fewer drafts are
  // the first ones of the same block.
  int64_t drafts = 0;
};

// What a draft gives. Input i has counts[i] drafts, for positions state->length() + 1 ...; they
// stand at [i * draft_block_size, + counts[i]) of the others.
struct DraftOutput {
  std::vector<int64_t> counts;
  std::vector<int32_t> tokens;
  // Raw values of the confidence head: the sigmoid estimates the chance that a draft is accepted
  // where all before it were (spec algorithms section 1.1). They depend on the drafts before, not
  // on the draft itself.
  std::vector<float> confidence;
};

// Immutable after Create and safe to use from several threads, each with its own ForwardContext
// and states. Views the source's bytes, which must outlive it, as must the kernel table.
class Model {
 public:
  // `engram_token_map`: compressed id of every vocabulary id (tokenizer/engram_token_map.h).
  // Errors: missing or unfitting tensors, a token map or Engram tables that do not fit the
  // configuration.
  static Result<std::unique_ptr<Model>> Create(const ModelConfig& config,
                                               const TensorSource& source,
                                               std::vector<int32_t> engram_token_map,
                                               const kernels::KernelTable& kernels);
  ~Model();

  const ModelConfig& config() const { return config_; }
  const EngramHash& engram_hash() const { return *engram_hash_; }
  // `with_draft` is needed for Draft and costs its rings' memory and their projection.
  std::unique_ptr<SequenceState> NewSequence(bool with_draft = false) const;

  // Runs the chunks as one batch and advances their states. Row results do not depend on what else
  // is in the batch, on how prompts are cut into chunks, on the number of threads, or on where the
  // states lie in memory. `head` says what is wanted of the rows, the sum of logits_rows, and
  // receives it.
  // Errors, which change nothing: an empty chunk, a token id outside the vocabulary, a context
  // longer than max_position_embeddings or than the state's blocks, logits wanted of rows before
  // decoder_start, a replay that does not fit the state, topk outside its range.
  Status Forward(ForwardContext& context, std::span<const SequenceChunk> chunks,
                 HeadOutput& head) const;
  // All logits: [rows, vocab].
  Status Forward(ForwardContext& context, std::span<const SequenceChunk> chunks,
                 std::vector<float>& logits) const;

  // Drafts a block after the last token of every input, all as one batch. Drafts do not depend on
  // what else is in the batch, on the number of threads, or on where the states lie in memory.
  // Errors: a state without draft rings, an empty sequence, fewer decoder rows than a full window
  // behind the last position, a token id outside the vocabulary, `drafts` outside its range.
  Status Draft(ForwardContext& context, std::span<const DraftInput> inputs,
               const DraftSampler& sampler, DraftOutput& out) const;

 private:
  friend class BlockPass;
  friend class ForwardPass;
  friend class DraftPass;
  Model(const ModelConfig& config, const kernels::KernelTable& kernels);

  ModelConfig config_;
  const kernels::KernelTable& kernels_;
  std::unique_ptr<ModelWeights> weights_;
  std::unique_ptr<EngramHash> engram_hash_;
  std::unique_ptr<RopeTable> window_rope_;      // ratio 0 and draft stages
  std::unique_ptr<RopeTable> compressed_rope_;  // ratio > 0
};

}  // namespace deepinfer::model::v41
