// The engine's loop: messages in, steps out to the device, results to requests. While the device
// runs a step, the loop plans the next one, then applies the results of the one before.
// Source: spec algorithms section 2.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "deepinfer/stats.h"
#include "engine/callback_thread.h"
#include "engine/choice.h"
#include "engine/engine_metrics.h"
#include "engine/inbox.h"
#include "exec/step_loop.h"
#include "sched/scheduler.h"

namespace deepinfer {

struct EngineLoopOptions {
  ControlTokens tokens;
  int64_t steps_in_flight = 2;
  int64_t draft_tokens = 0;  // of a decoding sequence in a step
  // Choices of a request wait for the first one's prompt, to find it in the prefix cache.
  bool share_prompts = false;
};

// Run belongs to one thread; stats() may be called from any.
class EngineLoop {
 public:
  // All outlive the loop.
  EngineLoop(sched::Scheduler& scheduler, exec::StepLoop& device, Inbox& inbox,
             CallbackThread& callbacks, EngineMetrics& metrics, const Tokenizer& tokenizer,
             const EngineLoopOptions& options);

  // Until the inbox is closed; then everything that runs is cancelled, and no row is in flight.
  void Run();
  EngineStats stats() const;
  // As of the last step.
  sched::SchedulerStats scheduler_stats() const;

 private:
  struct Entry {
    std::shared_ptr<ActiveRequest> request;
    bool admitted = false;
  };
  // A launched step and whose rows it has.
  struct Flight {
    exec::Step step;
    std::vector<std::shared_ptr<Choice>> choices;
  };

  struct Published {
    std::shared_ptr<Choice> choice;
    OutputDelta delta;
    bool last = false;  // of its request
  };

  bool TakeMessages();
  void Handle(SubmitMessage& message);
  void Handle(CancelMessage& message);
  void Handle(GrammarMessage& message);
  void Admit(const std::shared_ptr<ActiveRequest>& request,
             const std::shared_ptr<const grammar::CompiledGrammar>& grammar);
  // Ends a request none of whose choices the scheduler knows.
  void EndUnadmitted(const std::shared_ptr<ActiveRequest>& request, FinishReason reason,
                     const std::string& error);
  // The scheduler drops it; `error` empty: cancelled, else failed.
  void Drop(Choice& choice, const std::string& error);
  void DropAll(const std::string& error);

  bool Launch();
  void Collect();
  void FollowGrammars(Flight& flight);
  sched::RowResult Apply(const sched::PlanRow& row, exec::RowOutput& out, Choice& choice);
  void CountDrafts(const exec::RowOutput& out);
  void CountTokens(Choice& choice, int64_t tokens);
  void TakeFinished();
  // Hands out what came, after the next step is on its way.
  void Publish();
  void PublishEnd(Choice& choice);
  void UpdateStats();

  sched::Scheduler& scheduler_;
  exec::StepLoop& device_;
  Inbox& inbox_;
  CallbackThread& callbacks_;
  EngineMetrics& metrics_;
  const Tokenizer tokenizer_;
  const EngineLoopOptions options_;

  std::unordered_map<uint64_t, Entry> requests_;
  int64_t unadmitted_ = 0;  // of them
  std::unordered_map<sched::RequestId, std::shared_ptr<Choice>> choices_;
  std::array<Flight, 2> flights_;
  std::vector<Message> messages_;
  std::vector<sched::RowResult> results_;
  std::vector<sched::FinishedRequest> finished_;
  std::vector<std::shared_ptr<Choice>> changed_;  // to be published
  std::vector<Published> published_;              // scratch of Publish
  bool continues_ = false;  // there was something to launch at every moment since the last step
  EngineStats totals_;      // what only grows

  mutable std::mutex stats_mutex_;
  EngineStats stats_;  // guarded by stats_mutex_, as is scheduler_stats_
  sched::SchedulerStats scheduler_stats_;
};

}  // namespace deepinfer
