// Exact checkers of the evaluation items.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/output_parser.h"

namespace deepinfer {

enum class Checker {
  kExact,     // the answer text equals the expected text
  kNumber,    // the last integer in the answer text
  kJson,      // the answer text is JSON equal to the expected JSON, key order aside
  kToolCall,  // the calls' names and arguments equal the expected list, in order
};

// "exact", "number", "json", "tool_call"; empty for anything else.
std::optional<Checker> ParseChecker(std::string_view name);

// `answer_json` is the item's "answer" as JSON text: a string for kExact and kJson, an integer for
// kNumber, a list of {"name", "arguments"} for kToolCall. Output that could not be parsed is wrong,
// and so is a tool call where text was asked for.
bool IsCorrect(Checker checker, std::string_view answer_json, const ParsedOutput& output);

}  // namespace deepinfer
