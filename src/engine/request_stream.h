// What a request has given so far, between the engine that adds to it and whoever reads it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "deepinfer/result.h"

namespace deepinfer {

// Thread-safe. Outlives its engine if a reader holds it: the request has then ended.
class RequestStream {
 public:
  // `cancel` asks the engine to end the request; it may come from any thread, at any time.
  RequestStream(uint64_t id, std::vector<int32_t> prompt, int64_t choices,
                std::function<void()> cancel);

  uint64_t id() const { return id_; }
  // See RequestHandle.
  std::optional<OutputDelta> Next();
  // The same for at most so long: empty also when nothing came.
  std::optional<OutputDelta> NextWithin(std::chrono::milliseconds time);
  // The same without waiting: empty also while there is nothing new.
  std::optional<OutputDelta> TryNext();
  RequestOutput Wait();
  // Empty: not all choices have ended within that time.
  std::optional<RequestOutput> WaitFor(std::chrono::milliseconds time);
  RequestOutput Snapshot() const;
  void Cancel();
  bool finished() const;

  // For the engine. Adds to the delta's choice; the finish reason, where set, ends it.
  void Append(const OutputDelta& delta);
  // Changes what is no part of a delta (stop reasons, prompt log-probabilities, usage, timings).
  void Update(const std::function<void(RequestOutput&)>& change);

 private:
  // What was given out of a choice.
  struct Cursor {
    size_t text = 0, tokens = 0;
    bool finished = false;
  };
  // Empty when nothing is new.
  std::optional<OutputDelta> TakeDelta();
  bool AllTaken() const;

  const uint64_t id_;
  const std::function<void()> cancel_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  RequestOutput output_;  // guarded by mutex_, like all below
  std::vector<Cursor> cursors_;
  int64_t open_choices_;
};

}  // namespace deepinfer
