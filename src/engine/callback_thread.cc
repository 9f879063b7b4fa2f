#include "engine/callback_thread.h"

#include <exception>
#include <system_error>
#include <utility>

namespace deepinfer {

CallbackThread::~CallbackThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status CallbackThread::Start() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return {};
  try {
    thread_ = std::thread([this] { Main(); });
  } catch (const std::system_error& e) {
    return MakeError(ErrorCode::kResourceExhausted, "the system refuses a thread for callbacks: {}",
                     e.what());
  }
  return {};
}

void CallbackThread::Post(std::shared_ptr<Subscription> subscription) {
  {
    const std::lock_guard lock(mutex_);
    due_.push_back(std::move(subscription));
  }
  changed_.notify_one();
}

void CallbackThread::Main() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !due_.empty(); });
    if (due_.empty()) return;
    const std::shared_ptr<Subscription> subscription = std::move(due_.front());
    due_.pop_front();
    lock.unlock();
    Deliver(*subscription);
    lock.lock();
  }
}

void CallbackThread::Deliver(Subscription& subscription) {
  try {
    while (!subscription.failed) {
      const std::optional<OutputDelta> delta = subscription.stream->TryNext();
      if (!delta) return;
      subscription.on_output(*delta);
    }
  } catch (const std::exception& e) {
    subscription.failed = true;
    subscription.on_failure(std::string("the callback threw: ") + e.what());
  } catch (...) {
    subscription.failed = true;
    subscription.on_failure("the callback threw something that is no std::exception");
  }
}

}  // namespace deepinfer
