#include "engine/completion.h"

#include <utility>

#include "tokenizer/detokenizer.h"

namespace deepinfer {
namespace {

// Turns ids into events: through the output parser, or as plain text.
class EventSource {
 public:
  EventSource(const Tokenizer& tokenizer, std::optional<StartState> start_state)
      : tokenizer_(tokenizer), detokenizer_(tokenizer) {
    if (start_state) parser_.emplace(*start_state);
  }

  std::vector<OutputEvent> Push(int32_t token) {
    if (parser_) return parser_->Push(tokenizer_.TokenBytes(token));
    return PlainText(detokenizer_.Push(token));
  }
  std::vector<OutputEvent> Finish() {
    if (parser_) return parser_->Finish();
    return PlainText(detokenizer_.Finish());
  }
  bool done() const { return parser_ && parser_->done(); }

 private:
  static std::vector<OutputEvent> PlainText(std::string text) {
    if (text.empty()) return {};
    return {{OutputEvent::Kind::kContent, std::move(text), std::nullopt}};
  }

  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  std::optional<OutputParser> parser_;
};

}  // namespace

std::string_view Completion::finish_reason() const {
  if (generation.reason != FinishReason::kStop) return FinishReasonName(generation.reason);
  if (output.error) return "error";
  return output.tool_calls.empty() ? "stop" : "tool_calls";
}

Result<Completion> Complete(Generator& generator, const Tokenizer& tokenizer, Prompt prompt,
                            const SamplingParams& sampling, int64_t max_tokens,
                            const CompletionHooks& hooks) {
  Completion completion;
  EventSource source(tokenizer, prompt.start_state);
  bool wanted = true;
  const auto deliver = [&](const std::vector<OutputEvent>& events) {
    completion.output.Add(events);
    for (const OutputEvent& event : events) {
      if (wanted && hooks.on_event) wanted = hooks.on_event(event);
    }
  };
  GenerationHooks generation_hooks{.prefill_progress = hooks.prefill_progress,
                                   .cancel = hooks.cancel};
  generation_hooks.on_token = [&](int32_t token) {
    deliver(source.Push(token));
    return wanted && (hooks.run_to_end || !source.done());
  };
  const GenerationRequest request{std::move(prompt.tokens), sampling, max_tokens};
  DI_ASSIGN_OR_RETURN(completion.generation, generator.Generate(request, generation_hooks));
  deliver(source.Finish());
  if (!wanted) completion.generation.reason = FinishReason::kCancelled;
  return completion;
}

}  // namespace deepinfer
