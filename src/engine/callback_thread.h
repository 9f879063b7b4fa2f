// Calls users' callbacks, so that the engine's loop need not wait for them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "deepinfer/request.h"
#include "engine/request_stream.h"

namespace deepinfer {

// A stream and who is told of it. Used by one thread at a time.
struct Subscription {
  std::shared_ptr<RequestStream> stream;
  std::function<void(const OutputDelta&)> on_output;
  // Called with what on_output threw; after that neither is called again.
  std::function<void(std::string)> on_failure;
  bool failed = false;
};

// One thread, which starts with the first request that has a callback. Thread-safe.
class CallbackThread {
 public:
  // Calls what is due, then ends.
  ~CallbackThread();
  // Before the first Post. Errors: the system refuses the thread.
  Status Start();
  // The subscription's stream has something new.
  void Post(std::shared_ptr<Subscription> subscription);

 private:
  void Main();
  static void Deliver(Subscription& subscription);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Subscription>> due_;  // guarded by mutex_, like all below
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace deepinfer
