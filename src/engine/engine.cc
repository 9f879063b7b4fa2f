#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/available_memory.h"
#include "engine/engine_loop.h"
#include "exec/executor.h"
#include "exec/paged_memory.h"
#include "sampling/sampling_params.h"

namespace deepinfer {
namespace {

// Blocks that stay available when a request is admitted beside others: this share of all.
constexpr int64_t kWatermarkShare = 100;

// Whether a prompt ends inside a reasoning block: its last think marker opens one.
bool EndsInReasoning(std::span<const int32_t> prompt, int32_t think, int32_t think_end) {
  for (size_t i = prompt.size(); i-- > 0;) {
    if (prompt[i] == think_end) return false;
    if (prompt[i] == think) return true;
  }
  return false;
}

Status ValidateDraftTokens(int64_t drafts, const ModelConfig& config) {
  if (drafts >= 0 && drafts <= config.draft_block_size) return {};
  return MakeError(ErrorCode::kInvalidArgument,
                   "use-nextn-decode is {}: the checkpoint's draft module gives a block of {} "
                   "drafts, so 0 to {} are allowed",
                   drafts, config.draft_block_size, config.draft_block_size);
}

sched::SchedulerOptions SchedulerOptionsOf(const EngineSettings& settings,
                                           const MemoryBudget& budget, const ModelConfig& config) {
  return {.block_count = budget.block_count,
          .block_tokens = settings.memory.block_tokens,
          .max_model_len = budget.max_model_len,
          .max_num_seqs = settings.memory.max_num_seqs,
          .max_batched_tokens = settings.max_num_batched_tokens,
          .max_draft_tokens = settings.draft_tokens,
          .watermark_blocks = budget.block_count / kWatermarkShare,
          .steps_in_flight = settings.async_scheduling ? 2 : 1,
          .prefix_mode = settings.prefix_mode,
          .eviction = settings.eviction,
          .min_hit_tokens = settings.min_hit_tokens,
          .window_tokens = config.sliding_window,
          .keep_tokens =
              settings.prefill.mode == PrefillMode::kCompact ? settings.prefill.keep_tokens : 0,
          .snapshot_count = budget.snapshot_count,
          .snapshot_interval = settings.memory.snapshot_interval};
}

}  // namespace

EngineSettings EngineSettingsOf(const Options& options) {
  EngineSettings settings;
  settings.prefill = PrefillPolicyOf(options);
  settings.threads = ThreadCount(options.threads);
  settings.placement = WorkerPlacement(options);
  settings.placement.pin_caller = true;  // the device's thread, which is the engine's own
  settings.memory = {.max_model_len = options.max_model_len,
                     .max_num_seqs = options.max_num_seqs,
                     .block_tokens = options.block_size,
                     .kv_cache_bytes = options.kv_cache_bytes,
                     .memory_fraction = options.memory_fraction,
                     .grammar_cache_bytes = options.grammar_cache_bytes,
                     .snapshot_bytes = 0,
                     .snapshot_interval = options.prefix_snapshot_interval};
  settings.max_num_batched_tokens = options.max_num_batched_tokens;
  switch (options.prefix_caching) {
    case PrefixCaching::kOff:
      settings.prefix_mode = cache::PrefixMode::kOff;
      break;
    case PrefixCaching::kFast:
      settings.prefix_mode = cache::PrefixMode::kFast;
      break;
    case PrefixCaching::kDeterministic:
      settings.prefix_mode = cache::PrefixMode::kDeterministic;
      break;
  }
  settings.eviction = options.prefix_eviction == PrefixEviction::kLru
                          ? cache::EvictionKind::kLru
                          : cache::EvictionKind::kS3Fifo;
  settings.async_scheduling = options.async_scheduling != 0;
  settings.draft_tokens = options.use_nextn_decode;
  settings.logprobs_mode =
      options.logprobs_mode == LogprobsOption::kRaw ? LogprobsMode::kRaw : LogprobsMode::kProcessed;
  return settings;
}

class Engine::Core {
 public:
  Core(std::shared_ptr<const Runtime> runtime, const EngineSettings& settings)
      : runtime_(std::move(runtime)),
        settings_(settings),
        compiler_(runtime_->tokenizer(), runtime_->config().vocab_size,
                  runtime_->config().eos_token, settings.memory.grammar_cache_bytes),
        metrics_([this] { return loop_->stats(); }) {}
  ~Core();

  Status Start();
  Status Check(const EngineRequest& request) const;
  Result<std::shared_ptr<RequestStream>> Submit(EngineRequest request);

  const Runtime& runtime() const { return *runtime_; }
  const MemoryBudget& budget() const { return budget_; }
  const EngineLoop& loop() const { return *loop_; }
  const EngineMetrics& metrics() const { return metrics_; }
  std::vector<MemoryLine> MemoryInUse() const;

 private:
  const std::shared_ptr<const Runtime> runtime_;
  const EngineSettings settings_;
  MemoryBudget budget_;
  ControlTokens tokens_;
  int32_t think_ = -1;
  std::unique_ptr<exec::PagedMemory> memory_;
  std::unique_ptr<exec::Executor> executor_;
  std::unique_ptr<exec::StepLoop> device_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  CallbackThread callbacks_;
  GrammarCompiler compiler_;
  EngineMetrics metrics_;
  std::unique_ptr<EngineLoop> loop_;
  std::atomic<uint64_t> next_id_{1};
  std::thread thread_;
};

Engine::Core::~Core() {
  inbox_->Close();
  if (thread_.joinable()) thread_.join();
}

Status Engine::Core::Start() {
  const ModelConfig& config = runtime_->config();
  DI_RETURN_IF_ERROR(ValidatePrefillPolicy(settings_.prefill, config));
  DI_RETURN_IF_ERROR(ValidateDraftTokens(settings_.draft_tokens, config));
  DI_ASSIGN_OR_RETURN(
      model::v41::CacheLayout layout,
      model::v41::CacheLayout::Create(config, {.block_tokens = settings_.memory.block_tokens,
                                               .with_draft = settings_.draft_tokens > 0,
                                               .max_rollback = settings_.draft_tokens}));
  DI_ASSIGN_OR_RETURN(const uint64_t available, AvailableMemoryBytes());
  DI_ASSIGN_OR_RETURN(budget_,
                      PlanMemory(*runtime_, layout,
                                 {.limits = settings_.memory,
                                  .prefix_mode = settings_.prefix_mode,
                                  .max_num_batched_tokens = settings_.max_num_batched_tokens,
                                  .max_draft_tokens = settings_.draft_tokens,
                                  .available_bytes = available}));
  DI_ASSIGN_OR_RETURN(scheduler_,
                      sched::Scheduler::Create(SchedulerOptionsOf(settings_, budget_, config)));
  DI_ASSIGN_OR_RETURN(
      memory_,
      exec::PagedMemory::Create(std::make_shared<const model::v41::CacheLayout>(std::move(layout)),
                                {budget_.block_count, budget_.slot_count, budget_.snapshot_count}));
  executor_ = std::make_unique<exec::Executor>(
      runtime_->model(), *memory_,
      exec::ExecutorOptions{settings_.prefill, budget_.logits_rows, settings_.logprobs_mode});
  DI_ASSIGN_OR_RETURN(device_, exec::StepLoop::Create(*executor_, settings_.threads,
                                                      settings_.placement, settings_.probe));
  const Tokenizer& tokenizer = runtime_->tokenizer();
  tokens_ = {config.eos_token, tokenizer.FindToken("</think>").value_or(-1)};
  think_ = tokenizer.FindToken("<think>").value_or(-1);
  loop_ = std::make_unique<EngineLoop>(
      *scheduler_, *device_, *inbox_, callbacks_, metrics_, tokenizer,
      EngineLoopOptions{.tokens = tokens_,
                        .steps_in_flight = settings_.async_scheduling ? 2 : 1,
                        .draft_tokens = settings_.draft_tokens,
                        .share_prompts = settings_.prefix_mode != cache::PrefixMode::kOff});
  try {
    thread_ = std::thread([this] { loop_->Run(); });
  } catch (const std::system_error& e) {
    return MakeError(ErrorCode::kResourceExhausted, "the system refuses a thread: {}", e.what());
  }
  return {};
}

Status Engine::Core::Check(const EngineRequest& request) const {
  DI_RETURN_IF_ERROR(ValidateSamplingParams(request.sampling));
  DI_RETURN_IF_ERROR(ValidateTokenIds(request.sampling, runtime_->config().vocab_size));
  if (request.prompt.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "the prompt is empty: it has no tokens");
  }
  if (std::ssize(request.prompt) >= budget_.max_model_len) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "the prompt has {} tokens; the context of {} tokens leaves room for a prompt "
                     "of at most {}",
                     request.prompt.size(), budget_.max_model_len, budget_.max_model_len - 1);
  }
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    const int32_t id = request.prompt[i];
    if (id < 0 || id >= runtime_->config().vocab_size) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "token id {} at place {} of the prompt is outside 0 to {}", id, i,
                       runtime_->config().vocab_size - 1);
    }
  }
  if (request.options.priority < -sched::kMaxPriority ||
      request.options.priority > sched::kMaxPriority) {
    return MakeError(ErrorCode::kInvalidArgument, "priority {} is outside -{} to {}",
                     request.options.priority, sched::kMaxPriority, sched::kMaxPriority);
  }
  if (const auto stops = StopStrings::Create(request.sampling.stop); !stops) {
    return Forward(stops.error());
  }
  if (request.sampling.so_args) {
    if (const auto source = MakeGrammarSource(*request.sampling.so_args); !source) {
      return Forward(source.error());
    }
  }
  if (request.sampling.prompt_logprobs && settings_.prefill.mode == PrefillMode::kCompact) {
    return MakeError(ErrorCode::kUnsupported,
                     "prompt_logprobs need prefill-mode off: compact does not compute the logits "
                     "of most prompt tokens");
  }
  return {};
}

Result<std::shared_ptr<RequestStream>> Engine::Core::Submit(EngineRequest request) {
  DI_RETURN_IF_ERROR(Check(request));
  auto active = std::make_shared<ActiveRequest>();
  DI_ASSIGN_OR_RETURN(StopStrings stops, StopStrings::Create(request.sampling.stop));
  active->stops = std::make_shared<const StopStrings>(std::move(stops));
  if (request.sampling.so_args) {
    DI_ASSIGN_OR_RETURN(active->grammar, MakeGrammarSource(*request.sampling.so_args));
    active->thinking = EndsInReasoning(request.prompt, think_, tokens_.think_end);
  }
  if (request.options.on_output) DI_RETURN_IF_ERROR(callbacks_.Start());
  const int64_t choices = request.sampling.n;
  active->id = next_id_.fetch_add(static_cast<uint64_t>(choices));
  active->max_new_tokens =
      std::min(request.sampling.max_tokens, budget_.max_model_len - std::ssize(request.prompt));
  active->submitted = std::chrono::steady_clock::now();
  active->stream = std::make_shared<RequestStream>(
      active->id, request.prompt, choices,
      [inbox = inbox_, id = active->id] { inbox->Post(CancelMessage{id, {}}); });
  if (request.options.on_output) {
    active->subscription = std::make_shared<Subscription>();
    active->subscription->stream = active->stream;
    active->subscription->on_output = std::move(request.options.on_output);
    active->subscription->on_failure = [inbox = inbox_, id = active->id](std::string error) {
      inbox->Post(CancelMessage{id, std::move(error)});
    };
  }
  active->params = std::move(request.sampling);
  active->options = std::move(request.options);
  active->prompt = std::move(request.prompt);
  std::shared_ptr<RequestStream> stream = active->stream;
  const std::optional<GrammarSource> grammar = active->grammar;
  const uint64_t id = active->id;
  inbox_->Post(SubmitMessage{std::move(active)});
  if (grammar) {
    const Status compiling =
        compiler_.Compile(*grammar, [inbox = inbox_, id](GrammarResult result) {
          inbox->Post(GrammarMessage{id, std::move(result)});
        });
    if (!compiling) inbox_->Post(CancelMessage{id, compiling.error().message});
  }
  return stream;
}

std::vector<MemoryLine> Engine::Core::MemoryInUse() const {
  const model::v41::CacheLayout& layout = memory_->layout();
  const int64_t blocks = loop_->stats().kv_blocks_peak;
  return {{"global KV, most that was in use", static_cast<uint64_t>(blocks * layout.block_bytes)},
          {"windows and tails of sequences",
           static_cast<uint64_t>(budget_.slot_count * layout.slot_bytes)},
          {"workspace", device_->workspace_bytes()}};
}

Engine::Engine(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Create(std::shared_ptr<const Runtime> runtime,
                                               const EngineSettings& settings) {
  auto core = std::make_unique<Core>(std::move(runtime), settings);
  DI_RETURN_IF_ERROR(core->Start());
  return std::unique_ptr<Engine>(new Engine(std::move(core)));
}

Status Engine::Check(const EngineRequest& request) const { return core_->Check(request); }
Result<std::shared_ptr<RequestStream>> Engine::Submit(EngineRequest request) {
  return core_->Submit(std::move(request));
}

const Runtime& Engine::runtime() const { return core_->runtime(); }
EngineStats Engine::stats() const { return core_->loop().stats(); }
std::string Engine::MetricsText() const { return core_->metrics().Text(); }
const MemoryBudget& Engine::memory() const { return core_->budget(); }
std::vector<MemoryLine> Engine::MemoryInUse() const { return core_->MemoryInUse(); }
int64_t Engine::max_model_len() const { return core_->budget().max_model_len; }

Status Engine::CheckBalance() const {
  const sched::SchedulerStats stats = core_->loop().scheduler_stats();
  if (stats.held_blocks == 0 && stats.held_slots == 0 && stats.held_snapshots == 0 &&
      stats.free_blocks + stats.idle_blocks == stats.blocks) {
    return {};
  }
  return MakeError(ErrorCode::kInternal,
                   "{} blocks, {} slots and {} snapshots are held; {} of {} blocks are free and {} "
                   "idle",
                   stats.held_blocks, stats.held_slots, stats.held_snapshots, stats.free_blocks,
                   stats.blocks, stats.idle_blocks);
}

}  // namespace deepinfer
