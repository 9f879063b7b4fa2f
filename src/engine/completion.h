// One request from prompt to parsed answer: generation, detokenising and output parsing together.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "chat/output_parser.h"
#include "deepinfer/result.h"
#include "engine/engine.h"
#include "engine/prompt.h"
#include "engine/stats.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

struct Completion {
  ParsedOutput output;  // of a plain completion: content alone
  FinishReason reason = FinishReason::kStop;
  // What was drawn, the end-of-sentence token included; nothing behind a complete tool block.
  std::vector<int32_t> tokens;
  Usage usage;
  GenerationStats stats;

  // "stop", "length", "tool_calls", "cancelled", "deadline", or "error" for an output that ended by
  // itself and could not be parsed.
  std::string_view finish_reason() const;
};

// Reads the tokens of one choice into the parts of an answer. Not thread-safe.
class CompletionReader {
 public:
  // `start_state` is the prompt's. With `run_to_end` nothing ends the answer but its last token.
  CompletionReader(const Tokenizer& tokenizer, int32_t eos_token,
                   std::optional<StartState> start_state, bool run_to_end = false);

  // The parts that have become certain. Nothing after done().
  std::vector<OutputEvent> Push(std::span<const int32_t> tokens);
  // Nothing more can come of the answer, such as after a tool block.
  bool done() const { return done_; }
  // The last parts; call once.
  std::vector<OutputEvent> Finish();
  const std::vector<int32_t>& tokens() const { return tokens_; }

 private:
  const Tokenizer tokenizer_;
  const int32_t eos_token_;
  const bool run_to_end_;
  Detokenizer detokenizer_;
  std::optional<OutputParser> parser_;
  std::vector<int32_t> tokens_;
  bool done_ = false;
};

struct CompletionHooks {
  // Parts of the answer as soon as they are certain, in order, on the caller's thread. Returning
  // false cancels.
  std::function<bool(const OutputEvent&)> on_event = {};
  ProgressFn prefill_progress = {};
  const std::atomic<bool>* cancel = nullptr;  // looked at several times a second
  bool run_to_end = false;                    // as CompletionReader's
};

// Submits the request and waits for its answer; sampling.n is 1. A cancelled one is a result, not
// an error.
Result<Completion> Complete(Engine& engine, Prompt prompt, const SamplingParams& sampling,
                            const CompletionHooks& hooks = {});

// A request whose answer is read later.
class PendingCompletion {
 public:
  static Result<PendingCompletion> Submit(Engine& engine, Prompt prompt,
                                          const SamplingParams& sampling, bool run_to_end = false);
  Result<Completion> Wait(const CompletionHooks& hooks = {});

 private:
  PendingCompletion(Engine& engine, std::shared_ptr<RequestStream> stream, CompletionReader reader)
      : engine_(&engine), stream_(std::move(stream)), reader_(std::move(reader)) {}
  // More of the answer; empty at its end, or once it is cancelled.
  std::optional<OutputDelta> Next(const CompletionHooks& hooks);

  Engine* engine_;
  std::shared_ptr<RequestStream> stream_;
  CompletionReader reader_;
};

}  // namespace deepinfer
