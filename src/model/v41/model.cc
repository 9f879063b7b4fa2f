#include "model/v41/model.h"

#include <algorithm>
#include <limits>

#include "model/v41/draft_pass.h"
#include "model/v41/engram_hash.h"
#include "model/v41/forward_pass.h"
#include "model/v41/rope_table.h"
#include "model/v41/weights.h"

namespace deepinfer::model::v41 {
namespace {

// What the forward relies on beyond a valid configuration.
Status CheckSupported(const ModelConfig& config) {
  if (config.o_lora_rank % kernels::kGroup != 0) {
    return MakeError(ErrorCode::kUnsupported,
                     "o_lora_rank {} is not a multiple of {}: a scale tile of wo_a would span two "
                     "output groups",
                     config.o_lora_rank, kernels::kGroup);
  }
  for (const int layer : config.kv_source_layers) {
    if (!config.roles[layer].owns_index) {
      return MakeError(ErrorCode::kUnsupported,
                       "kv_source_layer_ids: layer {} is not in index_source_layer_ids; every KV "
                       "source must also make a selection list",
                       layer);
    }
  }
  if (config.candidate_source_layer >= 0 && config.candidate_source_layer < config.decoder_layer) {
    return MakeError(ErrorCode::kUnsupported,
                     "candidate_source_layer_id {} is before the last KV source {}",
                     config.candidate_source_layer, config.decoder_layer);
  }
  return {};
}

// Spec section 5.3.
Status CheckReplay(const ModelConfig& config, const SequenceChunk& chunk) {
  const SequenceState& state = *chunk.state;
  const int64_t start = chunk.replay_start, floor = chunk.write_floor;
  if (start < 0 || floor < start || floor > state.block_capacity()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "replay_start {} and write_floor {} do not fit 0 <= replay_start <= "
                     "write_floor <= {} (tokens that the blocks hold)",
                     start, floor, state.block_capacity());
  }
  if (start % 2 == 1 && floor == start) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "replay_start {} is inside a ratio-2 group, which write_floor {} does not "
                     "protect",
                     start, floor);
  }
  if (state.length() > 0 && state.length() < start) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "replay_start {} is beyond the sequence's length {}", start, state.length());
  }
  if (state.length() > 0 || start == 0 || config.engram_layers.empty()) return {};
  const int64_t needed = std::min<int64_t>(config.engram_max_ngram - 1, start);
  if (std::ssize(chunk.lookback) != needed) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "lookback has {} tokens; a replay from {} needs the {} before it",
                     chunk.lookback.size(), start, needed);
  }
  for (int64_t i = 0; i < needed; ++i) {
    if (chunk.lookback[i] < -1 || chunk.lookback[i] >= config.vocab_size) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "lookback: token id {} at position {} is outside [-1, {})",
                       chunk.lookback[i], start - needed + i, config.vocab_size);
    }
  }
  return {};
}

Status CheckChunk(const ModelConfig& config, const SequenceChunk& chunk) {
  const int64_t rows = std::ssize(chunk.tokens), start = chunk.start();
  DI_RETURN_IF_ERROR(CheckReplay(config, chunk));
  if (rows == 0) return MakeError(ErrorCode::kInvalidArgument, "a chunk holds no tokens");
  if (start + rows > config.max_position_embeddings) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "{} tokens are more than the context of {} (max_position_embeddings)",
                     start + rows, config.max_position_embeddings);
  }
  if (!chunk.state->owns_blocks() && start + rows > chunk.state->block_capacity()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} tokens are more than the sequence's blocks hold ({})", start + rows,
                     chunk.state->block_capacity());
  }
  for (int64_t i = 0; i < rows; ++i) {
    if (chunk.tokens[i] < 0 || chunk.tokens[i] >= config.vocab_size) {
      return MakeError(ErrorCode::kInvalidArgument, "token id {} at position {} is outside [0, {})",
                       chunk.tokens[i], start + i, config.vocab_size);
    }
  }
  if (chunk.logits_rows < 0 || chunk.logits_rows > rows) {
    return MakeError(ErrorCode::kInvalidArgument, "logits_rows {} is outside [0, {}]",
                     chunk.logits_rows, rows);
  }
  if (chunk.logits_rows > 0 && chunk.decoder_start > start + rows - chunk.logits_rows) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "logits of position {} need the decoder, which starts at {}",
                     start + rows - chunk.logits_rows, chunk.decoder_start);
  }
  if (!chunk.is_image.empty() && std::ssize(chunk.is_image) != rows) {
    return MakeError(ErrorCode::kInvalidArgument, "is_image has {} entries for {} tokens",
                     chunk.is_image.size(), rows);
  }
  return {};
}

Status CheckDraft(const ModelConfig& config, const DraftInput& input) {
  const SequenceState& state = *input.state;
  if (!state.with_draft()) {
    return MakeError(ErrorCode::kInvalidArgument, "the sequence was made without draft rings");
  }
  if (state.length() == 0) {
    return MakeError(ErrorCode::kInvalidArgument, "a draft needs at least one token of context");
  }
  if (input.next < 0 || input.next >= config.vocab_size) {
    return MakeError(ErrorCode::kInvalidArgument, "token id {} is outside [0, {})", input.next,
                     config.vocab_size);
  }
  if (input.drafts < 1 || input.drafts > config.draft_block_size) {
    return MakeError(ErrorCode::kInvalidArgument, "{} drafts are outside [1, {}]", input.drafts,
                     config.draft_block_size);
  }
  const int64_t needed = std::max<int64_t>(0, state.length() - config.sliding_window);
  if (state.draft_first_valid() > needed) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the draft rings start at position {}, a draft at {} needs {}",
                     state.draft_first_valid(), state.length(), needed);
  }
  return {};
}

}  // namespace

ForwardContext::ForwardContext(int threads, const ThreadPoolOptions& options)
    : pool_(threads, options), workspace_(std::make_unique<Workspace>()) {}
ForwardContext::~ForwardContext() = default;
size_t ForwardContext::workspace_bytes() const { return workspace_->bytes(); }

Model::Model(const ModelConfig& config, const kernels::KernelTable& kernels)
    : config_(config), kernels_(kernels) {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::Create(const ModelConfig& config, const TensorSource& source,
                                             std::vector<int32_t> engram_token_map,
                                             const kernels::KernelTable& kernels) {
  DI_RETURN_IF_ERROR(CheckSupported(config));
  std::unique_ptr<Model> model(new Model(config, kernels));
  DI_ASSIGN_OR_RETURN(model->weights_, BindWeights(config, source));
  DI_ASSIGN_OR_RETURN(EngramHash hash, EngramHash::Create(config, std::move(engram_token_map)));
  model->engram_hash_ = std::make_unique<EngramHash>(std::move(hash));
  model->window_rope_ = std::make_unique<RopeTable>(config, false);
  model->compressed_rope_ = std::make_unique<RopeTable>(config, true);
  return model;
}

std::unique_ptr<SequenceState> Model::NewSequence(bool with_draft) const {
  return std::make_unique<SequenceState>(config_, with_draft);
}

Status Model::Forward(ForwardContext& context, std::span<const SequenceChunk> chunks,
                      HeadOutput& head) const {
  for (const SequenceChunk& chunk : chunks) DI_RETURN_IF_ERROR(CheckChunk(config_, chunk));
  const int64_t max_topk = std::min(kernels::kMaxTopLogits, config_.vocab_size);
  if (head.topk < 0 || head.topk > max_topk) {
    return MakeError(ErrorCode::kInvalidArgument, "topk {} of the head is outside [0, {}]",
                     head.topk, max_topk);
  }
  ForwardPass(*this, context).Run(chunks, head);
  return {};
}

Status Model::Forward(ForwardContext& context, std::span<const SequenceChunk> chunks,
                      std::vector<float>& logits) const {
  HeadOutput head;
  head.logits.swap(logits);
  const Status status = Forward(context, chunks, head);
  head.logits.swap(logits);
  return status;
}

Status Model::Draft(ForwardContext& context, std::span<const DraftInput> inputs,
                    const DraftSampler& sampler, DraftOutput& out) const {
  for (const DraftInput& input : inputs) DI_RETURN_IF_ERROR(CheckDraft(config_, input));
  DraftPass(*this, context, inputs, sampler, out).Run();
  return {};
}

int32_t GreedyDraft(const DraftDraw& draw) {
  // Block by block, since the maximum of a block needs no branches.
  constexpr size_t kBlock = 64;
  const std::span<const float> logits = draw.logits;
  size_t best_block = 0;
  float best = -std::numeric_limits<float>::infinity();
  for (size_t block = 0; block < logits.size(); block += kBlock) {
    const size_t end = std::min(logits.size(), block + kBlock);
    float lanes[16];
    std::fill(std::begin(lanes), std::end(lanes), -std::numeric_limits<float>::infinity());
    size_t v = block;
    for (; v + 16 <= end; v += 16) {
      for (size_t l = 0; l < 16; ++l)
        lanes[l] = lanes[l] < logits[v + l] ? logits[v + l] : lanes[l];
    }
    for (; v < end; ++v) lanes[0] = std::max(lanes[0], logits[v]);
    const float largest = *std::max_element(std::begin(lanes), std::end(lanes));
    if (largest > best) {
      best = largest;
      best_block = block;
    }
  }
  const auto first = logits.begin() + static_cast<ptrdiff_t>(best_block);
  const auto last = std::min(logits.end(), first + kBlock);
  const auto found = std::find(first, last, best);
  return static_cast<int32_t>((found == last ? first : found) - logits.begin());
}

}  // namespace deepinfer::model::v41
