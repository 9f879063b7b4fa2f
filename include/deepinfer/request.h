// A request's input, its circumstances, and the handle to follow it by.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "deepinfer/result.h"

namespace deepinfer {

// Text that the model continues: the begin-of-sentence token goes before it, and nothing in it is a
// control token.
struct TextPrompt {
  std::string text;
};

// Ids for the model, as they are.
struct TokensPrompt {
  std::vector<int32_t> token_ids;
};

// A chat: JSON text of one object with "messages" and, if wanted, "tools", "response_format",
// "mode" ("chat", "thinking"), "reasoning_effort", "drop_thinking": docs/formats.md, "Requests".
struct ChatMessages {
  std::string json;
};

using PromptInput = std::variant<TextPrompt, TokensPrompt, ChatMessages>;

struct RequestOptions {
  // Within +-1000; higher goes first, as if it had arrived earlier.
  int32_t priority = 0;
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  // Requests of different salts share no cached prefixes.
  std::string cache_salt = {};
  // Called with every delta, in order, on a thread of the engine that serves callbacks alone; a
  // slow one delays others' callbacks, never the computation, and gets larger deltas. What it
  // throws ends the request with FinishReason::kError. It must not destroy the engine.
  std::function<void(const OutputDelta&)> on_output = {};
};

class RequestStream;

// Copies follow the same request. Thread-safe. May outlive the engine: its request has then ended.
class RequestHandle {
 public:
  explicit RequestHandle(std::shared_ptr<RequestStream> stream) : stream_(std::move(stream)) {}

  uint64_t id() const;
  // Waits for more of any choice. Empty: all choices have ended and were given out. Several callers
  // share the deltas out between them. Not for a request with a callback.
  std::optional<OutputDelta> Next();
  // The same for at most so long. Empty also when nothing came in time; if finished() held before,
  // all was given out.
  std::optional<OutputDelta> NextWithin(std::chrono::milliseconds time);
  // Waits until all choices have ended.
  RequestOutput Wait();
  // The same for at most so long; empty: they have not.
  std::optional<RequestOutput> WaitFor(std::chrono::milliseconds time);
  // All choices have ended.
  bool finished() const;
  // What there is so far.
  RequestOutput Snapshot() const;
  // The request ends with kCancelled, unless it has ended; returns at once.
  void Cancel();

  const std::shared_ptr<RequestStream>& stream() const { return stream_; }

 private:
  std::shared_ptr<RequestStream> stream_;
};

}  // namespace deepinfer
