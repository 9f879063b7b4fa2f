#include "exec/step_loop.h"

#include <system_error>
#include <utility>

namespace deepinfer::exec {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Result<std::unique_ptr<StepLoop>> StepLoop::Create(Executor& executor, int threads,
                                                   const ThreadPoolOptions& placement,
                                                   model::v41::ForwardProbe* probe) {
  std::unique_ptr<StepLoop> loop(new StepLoop(executor));
  try {
    loop->thread_ = std::thread(
        [&self = *loop, threads, placement, probe] { self.Main(threads, placement, probe); });
  } catch (const std::system_error& e) {
    return MakeError(ErrorCode::kResourceExhausted, "the system refuses a thread: {}", e.what());
  }
  std::unique_lock lock(loop->mutex_);
  loop->ended_changed_.wait(lock, [&] { return loop->started_; });
  DI_RETURN_IF_ERROR(loop->start_status_);
  lock.unlock();
  return loop;
}

StepLoop::~StepLoop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  launched_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StepLoop::Launch(Step& step, bool continues) {
  {
    const std::lock_guard lock(mutex_);
    launched_.push_back({&step, continues});
  }
  launched_changed_.notify_one();
}

Step& StepLoop::Wait() {
  std::unique_lock lock(mutex_);
  ended_changed_.wait(lock, [&] { return !ended_.empty(); });
  Step& step = *ended_.front();
  ended_.pop_front();
  return step;
}

DeviceTimes StepLoop::times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

size_t StepLoop::workspace_bytes() const {
  const std::lock_guard lock(mutex_);
  return workspace_bytes_;
}

// The pool's threads take their places relative to the one that makes it, so it is made here.
void StepLoop::Main(int threads, const ThreadPoolOptions& placement,
                    model::v41::ForwardProbe* probe) {
  model::v41::ForwardContext context(threads, placement);
  context.probe = probe;
  std::unique_lock lock(mutex_);
  start_status_ = context.pool().status();
  started_ = true;
  ended_changed_.notify_all();
  auto last_end = Clock::now();
  for (;;) {
    launched_changed_.wait(lock, [&] { return stopping_ || !launched_.empty(); });
    if (launched_.empty()) return;
    const Launched next = launched_.front();
    launched_.pop_front();
    const auto start = Clock::now();
    if (next.continues) times_.idle += Seconds(start - last_end);
    lock.unlock();
    executor_.Run(context, *next.step);
    lock.lock();
    last_end = Clock::now();
    times_.busy += Seconds(last_end - start);
    workspace_bytes_ = context.workspace_bytes();
    ended_.push_back(next.step);
    ended_changed_.notify_one();
  }
}

}  // namespace deepinfer::exec
