// What other threads ask of the engine's loop.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/grammar_compiler.h"

namespace deepinfer {

struct ActiveRequest;

struct SubmitMessage {
  std::shared_ptr<ActiveRequest> request;
};
struct CancelMessage {
  uint64_t request = 0;
  std::string error;  // empty: whoever waits for it cancelled it
};
struct GrammarMessage {
  uint64_t request = 0;
  GrammarResult grammar;
};
using Message = std::variant<SubmitMessage, CancelMessage, GrammarMessage>;

// Thread-safe. Outlives the engine where a request's handle does.
class Inbox {
 public:
  // False once the inbox is closed: nobody will read the message.
  bool Post(Message message) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      messages_.push_back(std::move(message));
    }
    changed_.notify_one();
    return true;
  }
  // After this nothing can be posted.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_one();
  }
  // Appends what has come. Returns whether the inbox is closed.
  bool Take(std::vector<Message>& messages) {
    const std::lock_guard lock(mutex_);
    std::move(messages_.begin(), messages_.end(), std::back_inserter(messages));
    messages_.clear();
    return closed_;
  }
  // Until there is something, or the inbox is closed.
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !messages_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Message> messages_;  // guarded by mutex_, as is closed_
  bool closed_ = false;
};

}  // namespace deepinfer
