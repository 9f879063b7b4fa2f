#include "engine/engine_loop.h"

#include <algorithm>
#include <utility>

namespace deepinfer {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

sched::Time ToSchedulerTime(SteadyTime time) {
  return std::chrono::duration_cast<sched::Time>(time.time_since_epoch());
}

FinishReason ReasonOf(sched::FinishReason reason, const Choice& choice, bool cut_by_context) {
  switch (reason) {
    case sched::FinishReason::kStop:
      return FinishReason::kStop;
    case sched::FinishReason::kLength:
      return cut_by_context ? FinishReason::kContext : FinishReason::kLength;
    case sched::FinishReason::kCancelled:
      return choice.error.empty() ? FinishReason::kCancelled : FinishReason::kError;
    case sched::FinishReason::kDeadline:
      return FinishReason::kDeadline;
    case sched::FinishReason::kFailed:
      return FinishReason::kError;
  }
  return FinishReason::kError;
}

}  // namespace

EngineLoop::EngineLoop(sched::Scheduler& scheduler, exec::StepLoop& device, Inbox& inbox,
                       CallbackThread& callbacks, EngineMetrics& metrics,
                       const Tokenizer& tokenizer, const EngineLoopOptions& options)
    : scheduler_(scheduler),
      device_(device),
      inbox_(inbox),
      callbacks_(callbacks),
      metrics_(metrics),
      tokenizer_(tokenizer),
      options_(options) {
  UpdateStats();
}

void EngineLoop::Run() {
  for (;;) {
    const bool closed = TakeMessages();
    if (closed) DropAll({});
    const bool launched = Launch();
    Publish();
    const int64_t in_flight = scheduler_.steps_in_flight();
    if (in_flight == options_.steps_in_flight || (!launched && in_flight > 0)) {
      Collect();
    } else if (!launched) {
      if (closed) return;
      // Without a step in flight the first in the queue always fits, so this never shows.
      if (scheduler_.unfinished() > 0) DropAll("the scheduler plans nothing for what waits");
      Publish();
      continues_ = false;
      inbox_.Wait();
    }
  }
}

bool EngineLoop::TakeMessages() {
  messages_.clear();
  const bool closed = inbox_.Take(messages_);
  for (Message& message : messages_) {
    std::visit([this](auto& m) { Handle(m); }, message);
  }
  TakeFinished();
  return closed;
}

void EngineLoop::Handle(SubmitMessage& message) {
  const std::shared_ptr<ActiveRequest>& request = message.request;
  request->open_choices = request->params.n;
  requests_[request->id] = {request, false};
  ++unadmitted_;
  if (!request->grammar) Admit(request, nullptr);
}

void EngineLoop::Handle(GrammarMessage& message) {
  const auto found = requests_.find(message.request);
  if (found == requests_.end() || found->second.admitted) return;  // cancelled meanwhile
  if (message.grammar) {
    Admit(found->second.request, *message.grammar);
  } else {
    EndUnadmitted(found->second.request, FinishReason::kError,
                  "so_args: " + message.grammar.error().message);
  }
}

void EngineLoop::Handle(CancelMessage& message) {
  const auto found = requests_.find(message.request);
  if (found == requests_.end()) return;  // it has ended
  const std::shared_ptr<ActiveRequest> request = found->second.request;
  if (!found->second.admitted) {
    const FinishReason reason =
        message.error.empty() ? FinishReason::kCancelled : FinishReason::kError;
    return EndUnadmitted(request, reason, message.error);
  }
  for (int64_t i = 0; i < request->params.n; ++i) {
    const auto choice = choices_.find(request->id + static_cast<uint64_t>(i));
    if (choice != choices_.end()) Drop(*choice->second, message.error);
  }
}

void EngineLoop::Admit(const std::shared_ptr<ActiveRequest>& request,
                       const std::shared_ptr<const grammar::CompiledGrammar>& grammar) {
  requests_[request->id].admitted = true;
  --unadmitted_;
  for (int64_t i = 0; i < request->params.n; ++i) {
    auto choice = std::make_shared<Choice>(request, i, tokenizer_, options_.tokens, grammar);
    sched::NewRequest added;
    added.id = choice->id();
    added.prompt = request->prompt;
    added.max_new_tokens = request->max_new_tokens;
    added.priority = request->options.priority;
    added.cache_salt = request->options.cache_salt;
    added.prompt_logprobs = i == 0 && request->params.prompt_logprobs.has_value();
    if (request->options.deadline) added.deadline = ToSchedulerTime(*request->options.deadline);
    if (i > 0 && options_.share_prompts) added.shares_prompt_with = request->id;
    const Status status = scheduler_.Add(std::move(added), ToSchedulerTime(request->submitted));
    if (status && options_.draft_tokens > 0) {
      // The request is there, and the scheduler was made for as many.
      (void)scheduler_.SetDraftTokens(choice->id(), options_.draft_tokens);
    }
    if (status) {
      choices_[choice->id()] = choice;
    } else {
      choice->Finish(FinishReason::kError, status.error().message);
      changed_.push_back(std::move(choice));
    }
  }
}

void EngineLoop::EndUnadmitted(const std::shared_ptr<ActiveRequest>& request, FinishReason reason,
                               const std::string& error) {
  requests_[request->id].admitted = true;
  --unadmitted_;
  for (int64_t i = 0; i < request->params.n; ++i) {
    auto choice = std::make_shared<Choice>(request, i, tokenizer_, options_.tokens, nullptr);
    choice->Finish(reason, error);
    changed_.push_back(std::move(choice));
  }
}

void EngineLoop::Drop(Choice& choice, const std::string& error) {
  if (choice.finished()) return;
  choice.error = error;
  // It may have ended in this very step; then that stays.
  (void)scheduler_.Cancel(choice.id());
}

void EngineLoop::DropAll(const std::string& error) {
  for (auto& [id, choice] : choices_) Drop(*choice, error);
  TakeFinished();
  for (auto& [id, entry] : requests_) {
    if (!entry.admitted) {
      EndUnadmitted(entry.request, error.empty() ? FinishReason::kCancelled : FinishReason::kError,
                    error);
    }
  }
}

bool EngineLoop::Launch() {
  if (scheduler_.steps_in_flight() == options_.steps_in_flight) return false;
  const auto start = Clock::now();
  const Result<const sched::StepPlan*> planned = scheduler_.Next(ToSchedulerTime(start));
  TakeFinished();
  totals_.times.plan += Seconds(Clock::now() - start);
  if (!planned) DropAll(planned.error().message);
  if (!planned || (*planned)->empty()) return false;
  const sched::StepPlan& plan = **planned;
  Flight& flight = flights_[static_cast<size_t>(plan.step) % flights_.size()];
  flight.step.plan = &plan;
  flight.step.rows.clear();
  flight.choices.clear();
  for (const sched::PlanRow& row : plan.rows) {
    const std::shared_ptr<Choice>& choice = choices_.at(row.request);
    ++choice->rows_in_flight;
    const exec::MaskGate* gate = nullptr;
    if (row.samples) {
      ++choice->samples_in_flight;
      gate = choice->PrepareGate();
    }
    flight.step.rows.push_back({&choice->sampling(), gate, choice.get()});
    flight.choices.push_back(choice);
    ActiveRequest& request = choice->request();
    if (!std::exchange(request.scheduled, true)) {
      const double waited = Seconds(start - request.submitted);
      metrics_.queue_time->Observe(waited);
      metrics_.prompt_tokens->Add(static_cast<double>(request.prompt.size()));
      totals_.prompt_tokens += std::ssize(request.prompt);
      request.stream->Update([&](RequestOutput& out) { out.timings.scheduled = waited; });
    }
    if (row.start < row.prompt_tokens) {
      totals_.computed_prompt_tokens += std::min(row.count, row.prompt_tokens - row.start);
    }
  }
  metrics_.step_tokens->Observe(static_cast<double>(plan.token_count));
  device_.Launch(flight.step, continues_);
  continues_ = true;
  // While the model runs: only drawing waits for the masks.
  for (const std::shared_ptr<Choice>& choice : flight.choices) {
    if (const Status opened = choice->OpenGate(); !opened) Drop(*choice, opened.error().message);
  }
  TakeFinished();
  return true;
}

void EngineLoop::Collect() {
  exec::Step& step = device_.Wait();
  const auto start = Clock::now();
  const sched::StepPlan& plan = *step.plan;
  Flight& flight = flights_[static_cast<size_t>(plan.step) % flights_.size()];
  FollowGrammars(flight);
  results_.clear();
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    results_.push_back(Apply(plan.rows[i], step.outputs[i], *flight.choices[i]));
  }
  const Status advanced = scheduler_.Advance({plan.step, results_});
  if (!advanced) DropAll(advanced.error().message);
  TakeFinished();
  for (std::shared_ptr<Choice>& choice : flight.choices) {
    if (--choice->rows_in_flight == 0 && choice->finished()) choices_.erase(choice->id());
    changed_.push_back(std::move(choice));
  }
  flight.choices.clear();
  totals_.times.forward += step.timing.forward;
  totals_.times.draft += step.timing.draft;
  totals_.times.sample += step.timing.sample;
  totals_.times.mask += step.timing.mask;
  totals_.times.host += Seconds(Clock::now() - start);
}

// First of all: rows of the next step may be waiting for their masks.
void EngineLoop::FollowGrammars(Flight& flight) {
  for (size_t i = 0; i < flight.choices.size(); ++i) {
    Choice& choice = *flight.choices[i];
    if (!flight.step.plan->rows[i].samples) continue;
    --choice.samples_in_flight;
    exec::RowOutput& out = flight.step.outputs[i];
    for (const int32_t token : out.tokens) {
      if (out.status && !choice.finished()) out.status = choice.FollowGrammar(token);
    }
    if (choice.finished() || !out.status) continue;
    out.status = choice.OpenGate();
  }
}

sched::RowResult EngineLoop::Apply(const sched::PlanRow& row, exec::RowOutput& out,
                                   Choice& choice) {
  sched::RowResult result;
  result.request = row.request;
  if (choice.finished()) {
    totals_.discarded_rows += 1;
    return result;
  }
  if (!out.prompt_logprobs.empty()) {
    choice.request().stream->Update([&](RequestOutput& output) {
      output.prompt_logprobs.insert(output.prompt_logprobs.end(),
                                    std::make_move_iterator(out.prompt_logprobs.begin()),
                                    std::make_move_iterator(out.prompt_logprobs.end()));
    });
  }
  if (!out.status) {
    choice.error = out.status.error().message;
    result.finish = sched::FinishReason::kFailed;
    return result;
  }
  size_t taken = 0;
  while (taken < out.tokens.size() && !result.finish) {
    TokenLogprobs* logprobs = out.logprobs.empty() ? nullptr : &out.logprobs[taken];
    if (choice.Accept(out.tokens[taken++], logprobs)) result.finish = sched::FinishReason::kStop;
  }
  result.tokens = std::span(out.tokens).first(taken);
  CountDrafts(out);
  CountTokens(choice, static_cast<int64_t>(taken));
  return result;
}

// What the model accepted, even where the answer ends before it.
void EngineLoop::CountDrafts(const exec::RowOutput& out) {
  if (out.drafts == 0) return;
  const int64_t accepted = std::min(out.drafts, std::ssize(out.tokens) - 1);
  SpeculationCounts& counts = totals_.speculation;
  counts.rounds += 1;
  counts.drafted_tokens += out.drafts;
  counts.accepted_tokens += accepted;
  if (std::ssize(counts.reached_at) < out.drafts) {
    counts.reached_at.resize(static_cast<size_t>(out.drafts));
    counts.accepted_at.resize(static_cast<size_t>(out.drafts));
  }
  for (int64_t k = 0; k < out.drafts && k <= accepted; ++k) {
    counts.reached_at[static_cast<size_t>(k)] += 1;
    counts.accepted_at[static_cast<size_t>(k)] += k < accepted ? 1 : 0;
  }
}

void EngineLoop::CountTokens(Choice& choice, int64_t tokens) {
  if (tokens == 0) return;
  ActiveRequest& request = choice.request();
  const SteadyTime now = Clock::now();
  totals_.generated_tokens += tokens;
  metrics_.generation_tokens->Add(static_cast<double>(tokens));
  if (!request.first_token) {
    request.first_token = now;
    metrics_.time_to_first_token->Observe(Seconds(now - request.submitted));
  } else if (request.params.n == 1) {
    metrics_.inter_token_latency->Observe(Seconds(now - request.last_token) /
                                          static_cast<double>(tokens));
  }
  request.last_token = now;
}

void EngineLoop::TakeFinished() {
  finished_.clear();
  scheduler_.TakeFinished(finished_);
  for (const sched::FinishedRequest& end : finished_) {
    const std::shared_ptr<Choice> choice = choices_.at(end.id);
    ActiveRequest& request = choice->request();
    const FinishReason reason =
        ReasonOf(end.reason, *choice, request.max_new_tokens < request.params.max_tokens);
    choice->Finish(reason, choice->error);
    totals_.preemptions += end.preemptions;
    metrics_.preemptions->Add(static_cast<double>(end.preemptions));
    request.stream->Update([&](RequestOutput& out) {
      out.preemptions += end.preemptions;
      if (end.id == request.id) out.usage.cached_tokens = end.cached_tokens;
    });
    if (choice->rows_in_flight == 0) choices_.erase(end.id);
    changed_.push_back(choice);
  }
}

void EngineLoop::Publish() {
  published_.clear();
  for (const std::shared_ptr<Choice>& choice : changed_) {
    std::optional<OutputDelta> delta = choice->TakeDelta();
    if (!delta) continue;
    ActiveRequest& request = choice->request();
    bool last = false;
    if (delta->finish_reason) {
      PublishEnd(*choice);
      metrics_.Finished(*delta->finish_reason);
      totals_.finished += 1;
      if (*delta->finish_reason == FinishReason::kError) totals_.failed += 1;
      last = --request.open_choices == 0;
    }
    published_.push_back({choice, std::move(*delta), last});
  }
  changed_.clear();
  // Whoever has an answer finds it counted.
  UpdateStats();
  for (const Published& published : published_) {
    ActiveRequest& request = published.choice->request();
    request.stream->Append(published.delta);
    if (request.subscription != nullptr) callbacks_.Post(request.subscription);
    if (published.last) requests_.erase(request.id);
  }
  published_.clear();
}

void EngineLoop::PublishEnd(Choice& choice) {
  ActiveRequest& request = choice.request();
  const double seconds = Seconds(Clock::now() - request.submitted);
  if (request.open_choices == 1) metrics_.end_to_end->Observe(seconds);
  request.stream->Update([&](RequestOutput& out) {
    CompletionOutput& own =
        out.outputs[static_cast<size_t>(choice.id() - static_cast<uint64_t>(request.id))];
    own.stop_token = choice.stop_token();
    own.stop_string = choice.stop_string();
    out.timings.finished = seconds;
    if (request.first_token) {
      out.timings.first_token = Seconds(*request.first_token - request.submitted);
    }
  });
}

void EngineLoop::UpdateStats() {
  const sched::SchedulerStats now = scheduler_.stats();
  EngineStats stats = totals_;
  stats.waiting = now.waiting + unadmitted_;
  stats.running = now.running;
  stats.steps = now.steps;
  stats.preemptions = now.preemptions;
  stats.prefix_query_tokens = now.prefix_query_tokens;
  stats.prefix_hit_tokens = now.prefix_hit_tokens;
  stats.kv_blocks = now.blocks;
  stats.kv_blocks_free = now.free_blocks;
  stats.kv_blocks_cached = now.idle_blocks;
  totals_.kv_blocks_peak = std::max(totals_.kv_blocks_peak, now.blocks - now.free_blocks);
  stats.kv_blocks_peak = totals_.kv_blocks_peak;
  stats.times.idle = device_.times().idle;
  const std::lock_guard lock(stats_mutex_);
  stats_ = stats;
  scheduler_stats_ = now;
}

EngineStats EngineLoop::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

sched::SchedulerStats EngineLoop::scheduler_stats() const {
  const std::lock_guard lock(stats_mutex_);
  return scheduler_stats_;
}

}  // namespace deepinfer
