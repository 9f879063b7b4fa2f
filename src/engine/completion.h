// One request from prompt to parsed answer: generation, detokenising and output parsing together.
#pragma once

#include <functional>

#include "base/result.h"
#include "chat/output_parser.h"
#include "engine/generator.h"
#include "engine/prompt.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

struct Completion {
  ParsedOutput output;  // of a plain completion: content alone
  Generation generation;

  // "stop", "length", "tool_calls", "cancelled", or "error" for an output that ended by itself and
  // could not be parsed.
  std::string_view finish_reason() const;
};

struct CompletionHooks {
  // Parts of the answer as soon as they are certain, in order. Returning false cancels.
  std::function<bool(const OutputEvent&)> on_event = {};
  ProgressFn prefill_progress = {};
  const std::atomic<bool>* cancel = nullptr;
  // Go on to the end-of-sentence token (or a limit) even where nothing more can come of it, such as
  // after a tool block.
  bool run_to_end = false;
};

Result<Completion> Complete(Generator& generator, const Tokenizer& tokenizer, Prompt prompt,
                            const SamplingParams& sampling, int64_t max_tokens,
                            const CompletionHooks& hooks = {});

}  // namespace deepinfer
