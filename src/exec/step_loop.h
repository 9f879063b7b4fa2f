// The thread on which steps run, one after another.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "base/thread_pool.h"
#include "exec/executor.h"
#include "exec/step.h"

namespace deepinfer::exec {

struct DeviceTimes {
  double busy = 0;  // seconds in which a step ran
  double idle = 0;  // seconds between a step and the next, where `continues` was said of that one
};

// Launch and Wait belong to one thread.
class StepLoop {
 public:
  // `executor` and `probe` (may be null) must outlive the loop.
  static Result<std::unique_ptr<StepLoop>> Create(Executor& executor, int threads,
                                                  const ThreadPoolOptions& placement,
                                                  model::v41::ForwardProbe* probe);
  // Waits for what was launched.
  ~StepLoop();

  // The step runs when those launched before have ended. `continues`: there was work at every
  // moment since the one before, so that time in which the thread waited was lost.
  void Launch(Step& step, bool continues);
  // Until the oldest launched step has ended, which is returned.
  Step& Wait();

  DeviceTimes times() const;
  size_t workspace_bytes() const;

 private:
  struct Launched {
    Step* step;
    bool continues;
  };
  explicit StepLoop(Executor& executor) : executor_(executor) {}
  void Main(int threads, const ThreadPoolOptions& placement, model::v41::ForwardProbe* probe);

  Executor& executor_;
  mutable std::mutex mutex_;
  std::condition_variable launched_changed_, ended_changed_;
  std::deque<Launched> launched_;  // guarded by mutex_, like all below
  std::deque<Step*> ended_;
  DeviceTimes times_;
  size_t workspace_bytes_ = 0;
  bool started_ = false;
  bool stopping_ = false;
  Status start_status_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace deepinfer::exec
