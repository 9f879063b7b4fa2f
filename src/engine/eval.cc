#include "engine/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

Result<EvalItem> ParseItem(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return MakeError(ErrorCode::kDataLoss, "no JSON object");
  EvalItem item;
  const auto id = json.find("id");
  if (id == json.end() || !id->is_string()) return MakeError(ErrorCode::kDataLoss, "no id");
  item.id = id->get<std::string>();
  const auto checker = json.find("checker");
  const auto known = checker != json.end() && checker->is_string()
                         ? ParseChecker(checker->get<std::string>())
                         : std::nullopt;
  if (!known) {
    return MakeError(ErrorCode::kDataLoss,
                     "item {}: checker is none of exact, number, json, tool_call", item.id);
  }
  item.checker = *known;
  const auto answer = json.find("answer");
  if (answer == json.end()) {
    return MakeError(ErrorCode::kDataLoss, "item {}: no answer", item.id);
  }
  item.answer_json = answer->dump();
  auto request = ParseChatRequest(line);
  if (!request) return Forward(std::move(request).error(), "item " + item.id);
  item.request = std::move(*request);
  return item;
}

}  // namespace

Result<EvalTask> ParseEvalTask(std::string_view name, std::string_view jsonl) {
  EvalTask task{std::string(name), {}};
  std::set<std::string> ids;
  int64_t number = 0;
  while (!jsonl.empty()) {
    const size_t end = std::min(jsonl.find('\n'), jsonl.size());
    const std::string_view line = jsonl.substr(0, end);
    jsonl.remove_prefix(std::min(end + 1, jsonl.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto item = ParseItem(line);
    if (!item) {
      return Forward(std::move(item).error(), fmt::format("task {}, line {}", name, number));
    }
    if (!ids.insert(item->id).second) {
      return MakeError(ErrorCode::kDataLoss, "task {}, line {}: id {} stands there twice", name,
                       number, item->id);
    }
    task.items.push_back(std::move(*item));
  }
  if (task.items.empty()) return MakeError(ErrorCode::kDataLoss, "task {} has no items", name);
  return task;
}

double TaskResult::accuracy() const {
  if (ids.empty()) return 0;
  return static_cast<double>(ids.size() - failed_ids.size()) / static_cast<double>(ids.size());
}

double PerplexityResult::perplexity() const { return std::exp(nats / static_cast<double>(tokens)); }

double PerplexityResult::bits_per_byte() const {
  return nats / std::log(2.0) / static_cast<double>(bytes);
}

Result<ExpectedResults> ParseExpectedResults(std::string_view json) {
  try {
    const Json root = Json::parse(json);
    ExpectedResults expected;
    for (const auto& [task, value] : root.at("accuracy").items()) {
      expected.accuracy[task] = value.get<double>();
    }
    for (const auto& [task, value] : root.at("items").items()) {
      expected.items[task] = value.get<int64_t>();
    }
    expected.failed_ids = root.at("failed_ids").get<std::vector<std::string>>();
    return expected;
  } catch (const Json::exception& e) {
    return MakeError(ErrorCode::kDataLoss, "expected.json: {}", e.what());
  }
}

std::vector<TaskComparison> CompareResults(const std::vector<TaskResult>& results,
                                           const ExpectedResults& expected) {
  const std::set<std::string> expected_failures(expected.failed_ids.begin(),
                                                expected.failed_ids.end());
  std::vector<TaskComparison> comparisons;
  for (const TaskResult& result : results) {
    const auto accuracy = expected.accuracy.find(result.name);
    const auto items = expected.items.find(result.name);
    if (accuracy == expected.accuracy.end() || items == expected.items.end()) continue;
    TaskComparison& comparison = comparisons.emplace_back();
    comparison.name = result.name;
    comparison.expected_accuracy = accuracy->second;
    const std::set<std::string> failures(result.failed_ids.begin(), result.failed_ids.end());
    const size_t common = std::min(result.ids.size(), static_cast<size_t>(items->second));
    size_t passed = 0;
    for (size_t i = 0; i < common; ++i) {
      const std::string& id = result.ids[i];
      const bool fails = failures.contains(id);
      passed += fails ? 0 : 1;
      if (fails == expected_failures.contains(id)) continue;
      (fails ? comparison.now_failing : comparison.now_passing).push_back(id);
    }
    comparison.items = static_cast<int64_t>(common);
    comparison.accuracy =
        common == 0 ? 0 : static_cast<double>(passed) / static_cast<double>(common);
  }
  return comparisons;
}

std::string EvalReportJson(const std::vector<TaskResult>& results,
                           const PerplexityResult* perplexity, const PrefillPolicy& prefill,
                           int64_t max_tokens) {
  const bool compact = prefill.mode == PrefillMode::kCompact;
  Json report;
  report["tasks"] = Json::object();
  for (const TaskResult& result : results) {
    report["tasks"][result.name] = {{"accuracy", result.accuracy()},
                                    {"items", result.ids.size()},
                                    {"failed_ids", result.failed_ids}};
  }
  if (perplexity != nullptr) {
    report["perplexity"] = {{"per_token", perplexity->perplexity()},
                            {"bits_per_byte", perplexity->bits_per_byte()},
                            {"tokens", perplexity->tokens},
                            {"bytes", perplexity->bytes},
                            {"window_tokens", perplexity->window_tokens}};
  }
  report["settings"] = {{"prefill_mode", compact ? "compact" : "off"}, {"max_tokens", max_tokens}};
  if (compact) report["settings"]["prefill_keep_tokens"] = prefill.keep_tokens;
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace deepinfer
