// deepinfer eval: accuracy on a checkpoint's evaluation items, perplexity of its held-out text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/file.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "engine/eval.h"

namespace deepinfer::cli {
namespace {

constexpr std::string_view kProse = "prose_heldout";

std::vector<std::string> SplitNames(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (end > 0) names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

// Names of the task files in a folder, sorted; the prose is one where it exists.
Result<std::vector<std::string>> AvailableTasks(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".jsonl" || path.filename() == fmt::format("{}.txt", kProse)) {
      names.push_back(path.stem().string());
    }
  }
  if (error || names.empty()) {
    return MakeError(ErrorCode::kNotFound, "no evaluation tasks (*.jsonl) in {}{}", folder.string(),
                     error ? ": " + error.message() : "");
  }
  std::ranges::sort(names);
  return names;
}

class EvalCommand final : public Command {
 public:
  std::string name() const override { return "eval"; }
  std::string summary() const override {
    return "Measures accuracy and perplexity on a checkpoint's evaluation files.";
  }
  std::string examples() const override {
    return "  deepinfer eval\n"
           "  deepinfer eval --tasks add,json --limit 20\n"
           "  deepinfer eval --prefill-mode compact --json report.json\n";
  }
  void Declare(FlagSet& flags) override {
    flags.Text("tasks", tasks_, "A,B", "Only these tasks (default all).");
    flags.Integer("limit", limit_, 1, 1 << 30, "Only the first N items of each task.");
    flags.Text("data", data_, "DIR", "Folder of the task files (default MODEL/eval).");
    flags.Text("json", json_file_, "FILE", "Writes the report to a file.");
    flags.FromTable({"model", "threads", "cpu-pinning", "cpu-target", "max-tokens", "prefill-mode",
                     "prefill-keep-tokens", "check-weights", "weights"});
    DeclareEngineFlags(flags);
  }

  Status Validate(const ResolvedOptions&) override {
    if (!tasks_ || !SplitNames(*tasks_).empty()) return {};
    return MakeError(ErrorCode::kInvalidArgument, "--tasks \"{}\" names no task", *tasks_);
  }

  Result<int> Run(const ResolvedOptions& options) override {
    if (json_file_) DI_RETURN_IF_ERROR(CheckUserFile(*json_file_));
    DI_ASSIGN_OR_RETURN(const std::filesystem::path model, ChooseModel(options));
    const std::filesystem::path folder = data_ ? std::filesystem::path(*data_) : model / "eval";
    DI_ASSIGN_OR_RETURN(const std::vector<EvalTask> tasks, ReadTasks(folder));
    DI_ASSIGN_OR_RETURN(const auto runtime,
                        Runtime::Load(model, RuntimeOptionsOf(options.values), TerminalProgress()));
    const Options& values = options.values;
    const auto start = std::chrono::steady_clock::now();
    std::vector<TaskResult> results;
    {
      DI_ASSIGN_OR_RETURN(const auto engine, Engine::Create(runtime, EngineSettingsOf(values)));
      DI_ASSIGN_OR_RETURN(results,
                          RunEvalTasks(*engine, tasks, values.max_tokens, TerminalProgress()));
    }
    std::optional<PerplexityResult> perplexity;
    if (with_prose_) {
      DI_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder / fmt::format("{}.txt", kProse)));
      DI_ASSIGN_OR_RETURN(perplexity, MeasurePerplexity(*runtime, text, ThreadCount(values.threads),
                                                        TerminalProgress()));
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    DI_RETURN_IF_ERROR(Print(results, perplexity, folder));
    DI_RETURN_IF_ERROR(StandardOutput().Write(fmt::format("{:.1f} s\n", seconds.count())));
    // The table is on the screen before a bad target can lose it.
    DI_RETURN_IF_ERROR(StandardOutput().Flush());
    if (json_file_) {
      DI_RETURN_IF_ERROR(
          WriteUserFile(*json_file_, EvalReportJson(results, perplexity ? &*perplexity : nullptr,
                                                    PrefillPolicyOf(values), values.max_tokens)));
    }
    return kExitOk;
  }

 private:
  Result<std::vector<EvalTask>> ReadTasks(const std::filesystem::path& folder) {
    DI_ASSIGN_OR_RETURN(const std::vector<std::string> available, AvailableTasks(folder));
    const std::vector<std::string> names = tasks_ ? SplitNames(*tasks_) : available;
    std::vector<EvalTask> tasks;
    for (const std::string& name : names) {
      if (std::ranges::find(available, name) == available.end()) {
        return MakeError(ErrorCode::kInvalidArgument, "no task {}; there are {}", name,
                         fmt::join(available, ", "));
      }
      if (name == kProse) {
        with_prose_ = true;
        continue;
      }
      DI_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder / (name + ".jsonl")));
      DI_ASSIGN_OR_RETURN(EvalTask task, ParseEvalTask(name, text));
      if (limit_ && static_cast<uint64_t>(*limit_) < task.items.size()) {
        task.items.resize(static_cast<size_t>(*limit_));
      }
      tasks.push_back(std::move(task));
    }
    return tasks;
  }

  Status Print(const std::vector<TaskResult>& results,
               const std::optional<PerplexityResult>& perplexity,
               const std::filesystem::path& folder) const {
    std::string text;
    for (const TaskResult& result : results) {
      text += fmt::format("{:<20} {:6.2f} %  of {:4} items\n", result.name, result.accuracy() * 100,
                          result.ids.size());
    }
    if (perplexity) {
      text += fmt::format(
          "{:<20} perplexity {:.3f} a token, {:.4f} bits a byte; {} tokens in "
          "windows of {}\n",
          kProse, perplexity->perplexity(), perplexity->bits_per_byte(), perplexity->tokens,
          perplexity->window_tokens);
    }
    const std::filesystem::path expected_file = folder / "expected.json";
    if (std::filesystem::exists(expected_file)) {
      DI_ASSIGN_OR_RETURN(const std::string json, ReadFile(expected_file));
      DI_ASSIGN_OR_RETURN(const ExpectedResults expected, ParseExpectedResults(json));
      text += ComparisonText(CompareResults(results, expected));
    }
    return StandardOutput().Write(text);
  }

  static std::string ComparisonText(const std::vector<TaskComparison>& comparisons) {
    std::string text;
    for (const TaskComparison& c : comparisons) {
      if (c.now_failing.empty() && c.now_passing.empty()) continue;
      text += fmt::format("{}, first {} items: {:.2f} %, expected {:.2f} % of its set\n", c.name,
                          c.items, c.accuracy * 100, c.expected_accuracy * 100);
      if (!c.now_failing.empty()) {
        text += fmt::format("  now failing: {}\n", fmt::join(c.now_failing, ", "));
      }
      if (!c.now_passing.empty()) {
        text += fmt::format("  now passing: {}\n", fmt::join(c.now_passing, ", "));
      }
    }
    return text.empty() ? text : "Differences from expected.json:\n" + text;
  }

  std::optional<std::string> tasks_;
  std::optional<int64_t> limit_;
  std::optional<std::string> data_;
  std::optional<std::string> json_file_;
  bool with_prose_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeEvalCommand() { return std::make_unique<EvalCommand>(); }

}  // namespace deepinfer::cli
