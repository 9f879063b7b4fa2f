#include "engine/eval_checker.h"

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::json;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The last run of digits, with its minus sign; empty when there is none.
std::string LastInteger(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && !IsDigit(text[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && IsDigit(text[begin - 1])) --begin;
  if (begin < end && begin > 0 && text[begin - 1] == '-') --begin;
  return std::string(text.substr(begin, end - begin));
}

// Equal as numbers of any length: signs and leading zeros aside.
bool SameInteger(std::string_view a, std::string_view b) {
  const auto split = [](std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
    return std::pair(negative && text != "0", text);
  };
  return !a.empty() && !b.empty() && split(a) == split(b);
}

bool SameCalls(const Json& answer, const ParsedOutput& output) {
  if (!answer.is_array() || answer.size() != output.tool_calls.size()) return false;
  for (size_t i = 0; i < answer.size(); ++i) {
    const ParsedToolCall& call = output.tool_calls[i];
    const Json arguments = Json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
    const auto expected_name = answer[i].find("name");
    const auto expected_arguments = answer[i].find("arguments");
    if (expected_name == answer[i].end() || expected_arguments == answer[i].end()) return false;
    if (*expected_name != call.name || *expected_arguments != arguments) return false;
  }
  return true;
}

}  // namespace

std::optional<Checker> ParseChecker(std::string_view name) {
  if (name == "exact") return Checker::kExact;
  if (name == "number") return Checker::kNumber;
  if (name == "json") return Checker::kJson;
  if (name == "tool_call") return Checker::kToolCall;
  return std::nullopt;
}

bool IsCorrect(Checker checker, std::string_view answer_json, const ParsedOutput& output) {
  if (output.error || output.open_call) return false;
  const Json answer = Json::parse(answer_json, nullptr, /*allow_exceptions=*/false);
  if (checker == Checker::kToolCall) return SameCalls(answer, output);
  if (!output.tool_calls.empty()) return false;
  switch (checker) {
    case Checker::kExact:
      return answer.is_string() && answer.get<std::string>() == output.content;
    case Checker::kNumber:
      return answer.is_number_integer() && SameInteger(LastInteger(output.content), answer.dump());
    case Checker::kJson: {
      if (!answer.is_string()) return false;
      const Json expected = Json::parse(answer.get<std::string>(), nullptr, false);
      const Json found = Json::parse(output.content, nullptr, false);
      return !expected.is_discarded() && !found.is_discarded() && expected == found;
    }
    case Checker::kToolCall:
      break;
  }
  return false;
}

}  // namespace deepinfer
