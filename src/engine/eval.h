// Runs evaluation items through the model and counts the right answers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "chat/message.h"
#include "engine/engine.h"
#include "engine/eval_checker.h"
#include "engine/runtime.h"
#include "exec/prefill.h"

namespace deepinfer {

struct EvalItem {
  std::string id;
  ChatRequest request;
  Checker checker = Checker::kExact;
  std::string answer_json;
};

struct EvalTask {
  std::string name;
  std::vector<EvalItem> items;
};

// Reads a task file: one item a line, {"id", "mode", "messages", "tools", "response_format",
// "answer", "checker"}; other keys are for people. Errors name the line.
Result<EvalTask> ParseEvalTask(std::string_view name, std::string_view jsonl);

struct TaskResult {
  std::string name;
  std::vector<std::string> ids;         // all items, in the file's order
  std::vector<std::string> failed_ids;  // in the file's order
  double accuracy() const;
};

// Greedy, all items together. An output counts as right when it passes its checker and ended with
// the end-of-sentence token. Results do not depend on the engine's settings but the prefill mode.
// Errors: a request that cannot be rendered or run names its item.
Result<std::vector<TaskResult>> RunEvalTasks(Engine& engine, const std::vector<EvalTask>& tasks,
                                             int64_t max_tokens, const ProgressFn& progress = {});

struct PerplexityResult {
  int64_t tokens = 0;  // predicted tokens: all of the text
  int64_t bytes = 0;
  int64_t window_tokens = 0;
  double nats = 0;  // summed negative log-likelihood
  double perplexity() const;
  double bits_per_byte() const;
};

// The text is cut into consecutive windows of at most 4096 tokens (the context, if that is
// smaller), the begin-of-sentence token in front of each counted in; every token of the text is
// predicted once, from what stands before it in its window. Runs every layer on every token,
// `threads` windows at the same time. Errors: text that is empty or not UTF-8.
Result<PerplexityResult> MeasurePerplexity(const Runtime& runtime, std::string_view text,
                                           int threads, const ProgressFn& progress = {});

// What a checkpoint's authors measured.
struct ExpectedResults {
  std::map<std::string, double, std::less<>> accuracy;
  std::map<std::string, int64_t, std::less<>> items;  // the first so many items of the file
  std::vector<std::string> failed_ids;
};
Result<ExpectedResults> ParseExpectedResults(std::string_view json);

// One task against what was expected, over the items that both have.
struct TaskComparison {
  std::string name;
  int64_t items = 0;
  double accuracy = 0;
  double expected_accuracy = 0;
  std::vector<std::string> now_failing;
  std::vector<std::string> now_passing;
};
// Tasks that `expected` does not know are left out.
std::vector<TaskComparison> CompareResults(const std::vector<TaskResult>& results,
                                           const ExpectedResults& expected);

// {"tasks": {NAME: {"accuracy", "items", "failed_ids"}}, "perplexity": {...}, "settings": {...}},
// indented, with a final line break. `perplexity` may be null.
std::string EvalReportJson(const std::vector<TaskResult>& results,
                           const PerplexityResult* perplexity, const PrefillPolicy& prefill,
                           int64_t max_tokens);

}  // namespace deepinfer
