#include "cli/session.h"

#include <algorithm>
#include <chrono>

#include "base/file.h"
#include "cli/output.h"
#include "engine/text.h"
#include "loader/model_resolver.h"

namespace deepinfer::cli {
namespace {

// Empty when the operating system does not tell.
std::filesystem::path ExecutableFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path();
}

}  // namespace

void DeclareEngineFlags(FlagSet& flags) {
  flags.FromTable({"max-model-len", "max-num-seqs", "max-num-batched-tokens", "block-size",
                   "kv-cache-bytes", "memory-fraction", "prefix-caching", "prefix-eviction",
                   "prefix-snapshot-interval", "async-scheduling", "use-nextn-decode",
                   "grammar-cache-bytes"});
}

Result<std::filesystem::path> ChooseModel(const ResolvedOptions& options, bool needs_weights) {
  ModelQuery query;
  // A value from the environment is left to the resolver, which says so.
  const auto source = options.sources.find("model");
  const bool from_environment =
      source != options.sources.end() && source->second == OptionSource::kEnvironment;
  if (!from_environment) query.model = options.values.model;
  query.environment = ProcessEnvironment();
  query.executable_folder = ExecutableFolder();
  std::error_code error;
  query.current_folder = std::filesystem::current_path(error);
  query.needs_weights = needs_weights;
  DI_ASSIGN_OR_RETURN(const ResolvedModel model, ResolveModel(query));
  const std::string folder = model.folder.string();
  const bool is_named = model.reason.find(folder) != std::string::npos;
  PrintNote(is_named ? "model: " + model.reason
                     : fmt::format("model: {} ({})", folder, model.reason));
  return model.folder;
}

Result<Tokenizer> LoadTokenizer(const ResolvedOptions& options) {
  DI_ASSIGN_OR_RETURN(const std::filesystem::path folder,
                      ChooseModel(options, /*needs_weights=*/false));
  return Tokenizer::FromFile(folder / "tokenizer.json");
}

ThreadPoolOptions ProgramPlacement(const Options& options) {
  ThreadPoolOptions placement = WorkerPlacement(options);
  placement.pin_caller = true;
  return placement;
}

Session::Session(std::unique_ptr<Engine> engine, double load_seconds)
    : engine_(std::move(engine)), start_(std::chrono::steady_clock::now()) {
  stats_.load_seconds = load_seconds;
}

Result<std::unique_ptr<Session>> Session::Open(const ResolvedOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  DI_ASSIGN_OR_RETURN(const std::filesystem::path folder, ChooseModel(options));
  DI_ASSIGN_OR_RETURN(auto runtime,
                      Runtime::Load(folder, RuntimeOptionsOf(options.values), TerminalProgress()));
  DI_ASSIGN_OR_RETURN(auto engine,
                      Engine::Create(std::move(runtime), EngineSettingsOf(options.values)));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return std::unique_ptr<Session>(new Session(std::move(engine), seconds.count()));
}

void Session::Count(const Completion& completion) {
  const GenerationStats& stats = completion.stats;
  if (completions_++ == 0) {
    stats_.time_to_first_token_seconds = stats.time_to_first_token_seconds;
  }
  stats_.prompt_tokens += stats.prompt_tokens;
  stats_.prefill_seconds += stats.prefill_seconds;
  stats_.generated_tokens += stats.generated_tokens;
  stats_.decoded_tokens += stats.decoded_tokens;
  stats_.decode_seconds += stats.decode_seconds;
}

void Session::PrintStats() const {
  GenerationStats stats = stats_;
  if (completions_ > 1) {
    // They ran together, so all of the time is everybody's.
    stats.decoded_tokens = stats.generated_tokens;
    stats.prefill_seconds = stats.decode_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  std::vector<MemoryLine> memory = runtime().memory();
  for (const MemoryLine& line : engine_->MemoryInUse()) memory.push_back(line);
  memory.push_back({"peak resident set of the process", PeakResidentBytes()});
  std::string text = FormatStats(stats, memory) + FormatSteps(engine_->stats());
  text.pop_back();
  PrintNote(text);
}

void ChatFlags::Declare(FlagSet& flags) {
  flags.Text("system", system, "TEXT", "System message.");
  flags.Switch("thinking", thinking, "Let the model reason before it answers.");
  flags.Text(
      "effort", effort, "N",
      "Reasoning effort in thinking mode: 1 to 100, low, high, xhigh or max (default high).");
  flags.Text("tools", tools_file, "FILE", "JSON list of tools the model may call, OpenAI form.");
}

Status ChatFlags::Validate() const {
  if (effort && !ParseEffort(*effort)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--effort {} is none of the integers 1 to 100, low, high, xhigh, max",
                     *effort);
  }
  return {};
}

Result<RequestDefaults> ChatFlags::Defaults(const Options& options) const {
  RequestDefaults defaults;
  defaults.sampling = {options.temperature, options.top_p, options.top_k, options.min_p,
                       static_cast<uint64_t>(options.seed)};
  defaults.sampling.max_tokens = options.max_tokens;
  defaults.chat.thinking_mode = thinking ? ThinkingMode::kThinking : ThinkingMode::kChat;
  if (effort) defaults.chat.reasoning_effort = *ParseEffort(*effort);
  if (system) {
    DI_RETURN_IF_ERROR(RequireUtf8(*system, "--system"));
    defaults.system = *system;
  }
  if (tools_file) {
    DI_ASSIGN_OR_RETURN(const std::string json, ReadFile(*tools_file));
    DI_RETURN_IF_ERROR(RequireUtf8(json, *tools_file));
    auto tools = ParseTools(json);
    if (!tools) return Forward(std::move(tools).error(), *tools_file);
    defaults.tools = std::move(*tools);
  }
  return defaults;
}

}  // namespace deepinfer::cli
