#include "engine/completion.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace deepinfer {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};

std::vector<OutputEvent> PlainText(std::string text) {
  if (text.empty()) return {};
  return {{OutputEvent::Kind::kContent, std::move(text), std::nullopt}};
}

bool Cancelled(const CompletionHooks& hooks) {
  return hooks.cancel != nullptr && hooks.cancel->load(std::memory_order_relaxed);
}

GenerationStats StatsOf(const RequestOutput& output, int64_t generated) {
  const RequestTimings& timings = output.timings;
  GenerationStats stats;
  stats.generated_tokens = generated;
  if (generated == 0) return stats;
  stats.prompt_tokens = output.usage.prompt_tokens;
  stats.decoded_tokens = generated - 1;
  stats.prefill_seconds = timings.first_token - timings.scheduled;
  stats.decode_seconds = timings.finished - timings.first_token;
  stats.time_to_first_token_seconds = timings.first_token;
  return stats;
}

}  // namespace

std::string_view Completion::finish_reason() const {
  if (reason != FinishReason::kStop) return FinishReasonName(reason);
  if (output.error) return "error";
  return output.tool_calls.empty() ? "stop" : "tool_calls";
}

CompletionReader::CompletionReader(const Tokenizer& tokenizer, int32_t eos_token,
                                   std::optional<StartState> start_state, bool run_to_end)
    : tokenizer_(tokenizer),
      eos_token_(eos_token),
      run_to_end_(run_to_end),
      detokenizer_(tokenizer) {
  if (start_state) parser_.emplace(*start_state);
}

std::vector<OutputEvent> CompletionReader::Push(std::span<const int32_t> tokens) {
  std::vector<OutputEvent> events;
  for (const int32_t token : tokens) {
    if (done_) break;
    tokens_.push_back(token);
    if (token == eos_token_) continue;
    std::vector<OutputEvent> more =
        parser_ ? parser_->Push(tokenizer_.TokenBytes(token)) : PlainText(detokenizer_.Push(token));
    std::ranges::move(more, std::back_inserter(events));
    done_ = !run_to_end_ && parser_ && parser_->done();
  }
  return events;
}

std::vector<OutputEvent> CompletionReader::Finish() {
  return parser_ ? parser_->Finish() : PlainText(detokenizer_.Finish());
}

Result<PendingCompletion> PendingCompletion::Submit(Engine& engine, Prompt prompt,
                                                    const SamplingParams& sampling,
                                                    bool run_to_end) {
  CompletionReader reader(engine.runtime().tokenizer(), engine.runtime().config().eos_token,
                          prompt.start_state, run_to_end);
  EngineRequest request;
  request.prompt = std::move(prompt.tokens);
  request.sampling = sampling;
  DI_ASSIGN_OR_RETURN(auto stream, engine.Submit(std::move(request)));
  return PendingCompletion(engine, std::move(stream), std::move(reader));
}

std::optional<OutputDelta> PendingCompletion::Next(const CompletionHooks& hooks) {
  if (!hooks.cancel && !hooks.prefill_progress) return stream_->Next();
  const int64_t prompt = std::ssize(stream_->Snapshot().prompt_token_ids);
  const int64_t before = engine_->stats().computed_prompt_tokens;
  for (;;) {
    if (Cancelled(hooks)) return std::nullopt;
    if (std::optional<OutputDelta> delta = stream_->NextWithin(kPollInterval)) return delta;
    if (stream_->finished()) return stream_->TryNext();
    if (!hooks.prefill_progress || !reader_.tokens().empty()) continue;
    const int64_t done = engine_->stats().computed_prompt_tokens - before;
    hooks.prefill_progress("reading the prompt", static_cast<uint64_t>(std::min(done, prompt - 1)),
                           static_cast<uint64_t>(prompt));
  }
}

Result<Completion> PendingCompletion::Wait(const CompletionHooks& hooks) {
  Completion completion;
  bool wanted = true;
  const auto deliver = [&](const std::vector<OutputEvent>& events) {
    completion.output.Add(events);
    for (const OutputEvent& event : events) {
      if (wanted && hooks.on_event) wanted = hooks.on_event(event);
    }
  };
  while (const std::optional<OutputDelta> delta = Next(hooks)) {
    if (hooks.prefill_progress && reader_.tokens().empty()) {
      hooks.prefill_progress("reading the prompt", 1, 1);
    }
    deliver(reader_.Push(delta->token_ids));
    if (!wanted || reader_.done()) break;
  }
  if (!stream_->finished()) stream_->Cancel();
  const RequestOutput output = stream_->Wait();
  const CompletionOutput& choice = output.outputs.front();
  completion.reason = reader_.done() ? FinishReason::kStop : *choice.finish_reason;
  if (completion.reason == FinishReason::kError) {
    return MakeError(ErrorCode::kInternal, "{}", choice.error);
  }
  deliver(reader_.Finish());
  if (!wanted) completion.reason = FinishReason::kCancelled;
  completion.tokens = reader_.tokens();
  completion.usage = output.usage;
  completion.usage.completion_tokens = std::ssize(completion.tokens);
  completion.stats = StatsOf(output, completion.usage.completion_tokens);
  return completion;
}

Result<Completion> Complete(Engine& engine, Prompt prompt, const SamplingParams& sampling,
                            const CompletionHooks& hooks) {
  DI_ASSIGN_OR_RETURN(
      PendingCompletion pending,
      PendingCompletion::Submit(engine, std::move(prompt), sampling, hooks.run_to_end));
  return pending.Wait(hooks);
}

}  // namespace deepinfer
