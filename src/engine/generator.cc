#include "engine/generator.h"

#include <algorithm>
#include <chrono>

namespace deepinfer {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

bool Cancelled(const GenerationHooks& hooks) {
  return hooks.cancel != nullptr && hooks.cancel->load(std::memory_order_relaxed);
}

}  // namespace

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
    case FinishReason::kContext:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      return "error";
  }
  return "stop";
}

Status ValidateGenerationRequest(const GenerationRequest& request, const ModelConfig& config) {
  if (request.prompt.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "the prompt is empty: it has no tokens");
  }
  const int64_t context = config.max_position_embeddings;
  if (static_cast<int64_t>(request.prompt.size()) >= context) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "the prompt has {} tokens; the context of {} tokens leaves room for a prompt "
                     "of at most {}",
                     request.prompt.size(), context, context - 1);
  }
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    const int32_t id = request.prompt[i];
    if (id < 0 || id >= config.vocab_size) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "token id {} at place {} of the prompt is outside 0 to {}", id, i,
                       config.vocab_size - 1);
    }
  }
  if (request.max_tokens < 1) {
    return MakeError(ErrorCode::kInvalidArgument, "max_tokens {} is below 1", request.max_tokens);
  }
  return ValidateSamplingParams(request.sampling);
}

Generator::Generator(const model::v41::Model& model, model::v41::ForwardContext& context,
                     const PrefillPolicy& policy)
    : model_(model), context_(context), policy_(policy) {}

Result<Generation> Generator::Generate(const GenerationRequest& request,
                                       const GenerationHooks& hooks) {
  DI_RETURN_IF_ERROR(ValidateGenerationRequest(request, model_.config()));
  const std::unique_ptr<model::v41::SequenceState> state = model_.NewSequence();
  head_.topk = TakesBest({}, request.sampling) ? 1 : 0;
  Generation out;
  const auto start = Clock::now();
  DI_RETURN_IF_ERROR(Prefill(request, hooks, *state));
  const auto prefilled = Clock::now();
  out.stats.prompt_tokens = state->length();
  out.stats.prefill_seconds = Seconds(start, prefilled);
  if (Cancelled(hooks)) {
    out.reason = FinishReason::kCancelled;
  } else {
    DI_RETURN_IF_ERROR(Decode(request, hooks, *state, out));
  }
  out.stats.generated_tokens = static_cast<int64_t>(out.tokens.size());
  out.stats.decoded_tokens = std::max<int64_t>(0, out.stats.generated_tokens - 1);
  out.global_kv_bytes = state->global_kv_bytes();
  out.fixed_cache_bytes = state->fixed_bytes();
  return out;
}

Status Generator::Prefill(const GenerationRequest& request, const GenerationHooks& hooks,
                          model::v41::SequenceState& state) {
  const std::span<const int32_t> prompt = request.prompt;
  const int64_t decoder_start = DecoderStart(policy_, static_cast<int64_t>(prompt.size()));
  for (size_t done = 0; done < prompt.size() && !Cancelled(hooks);) {
    const size_t size = std::min(prompt.size() - done, static_cast<size_t>(policy_.chunk_tokens));
    const bool is_last = done + size == prompt.size();
    const model::v41::SequenceChunk chunk{.state = &state,
                                          .tokens = prompt.subspan(done, size),
                                          .decoder_start = decoder_start,
                                          .logits_rows = is_last ? 1 : 0};
    DI_RETURN_IF_ERROR(model_.Forward(context_, {&chunk, 1}, head_));
    done += size;
    if (hooks.prefill_progress) hooks.prefill_progress("reading the prompt", done, prompt.size());
  }
  return {};
}

Result<int32_t> Generator::NextToken(const SamplingParams& params, int64_t position) {
  if (head_.topk == 0) return sampler_.Sample(head_.logits, params, position);
  return BestToken(head_.logits.front(), head_.ids.front(), model_.config().vocab_size);
}

Status Generator::Decode(const GenerationRequest& request, const GenerationHooks& hooks,
                         model::v41::SequenceState& state, Generation& out) {
  const ModelConfig& config = model_.config();
  // The prompt's value, unchanged: the caches of rows before it stay as the prompt left them.
  const int64_t decoder_start = DecoderStart(policy_, state.length());
  const auto start = Clock::now();
  auto first = start;
  auto last = start;
  for (;;) {
    DI_ASSIGN_OR_RETURN(const int32_t token, NextToken(request.sampling, state.length()));
    last = Clock::now();
    if (out.tokens.empty()) first = last;
    out.tokens.push_back(token);
    if (token == config.eos_token) break;
    if (hooks.on_token && !hooks.on_token(token)) break;
    if (static_cast<int64_t>(out.tokens.size()) >= request.max_tokens) {
      out.reason = FinishReason::kLength;
      break;
    }
    if (state.length() + 1 >= config.max_position_embeddings) {
      out.reason = FinishReason::kContext;
      break;
    }
    if (Cancelled(hooks)) {
      out.reason = FinishReason::kCancelled;
      break;
    }
    const model::v41::SequenceChunk chunk{
        .state = &state, .tokens = {&token, 1}, .decoder_start = decoder_start, .logits_rows = 1};
    DI_RETURN_IF_ERROR(model_.Forward(context_, {&chunk, 1}, head_));
  }
  out.stats.time_to_first_token_seconds = out.stats.prefill_seconds + Seconds(start, first);
  out.stats.decode_seconds = Seconds(first, last);
  return {};
}

}  // namespace deepinfer
