// Texts of the prompt format that are neither tokens nor parts of the request (spec chat sections 2
// and 3). Where one contains the text of a control token, it is that token. A {word} is replaced
// once. Internal to src/chat.
#pragma once

#include <string_view>

namespace deepinfer {

inline constexpr std::string_view kEffortLine =
    "Reasoning Effort: {n} (range 1-100, the higher the value, the more thorough the "
    "reasoning)\n\n";
inline constexpr std::string_view kToolsSection = R"(## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜ calls>" block like the following:

<｜DSML｜ calls>
<｜DSML｜ invoke name="$TOOL_NAME">
<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>
...
</｜DSML｜ invoke>
<｜DSML｜ invoke name="$TOOL_NAME2">
...
</｜DSML｜ invoke>
</｜DSML｜ calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

{schemas}

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
)";
inline constexpr std::string_view kResponseFormatSection = R"(## Response Format:

You MUST strictly adhere to the following schema to reply:
{schema})";
inline constexpr std::string_view kSchemaSeparator = "\n";
inline constexpr std::string_view kSectionSeparator = "\n\n";
inline constexpr std::string_view kBlockSeparator = "\n\n";
inline constexpr std::string_view kToolResultOpen = "<tool_result>";
inline constexpr std::string_view kToolResultClose = "</tool_result>";
inline constexpr std::string_view kUnsupportedBlock = "[Unsupported {type}]";
inline constexpr std::string_view kBeforeCalls = "\n\n";
inline constexpr std::string_view kBetweenTags = "\n";
inline constexpr std::string_view kCallsOpen = "<｜DSML｜ calls>";
inline constexpr std::string_view kCallsClose = "</｜DSML｜ calls>";
inline constexpr std::string_view kInvokeOpen = R"(<｜DSML｜ invoke name="{name}">)";
inline constexpr std::string_view kInvokeClose = "</｜DSML｜ invoke>";
inline constexpr std::string_view kParameterOpen =
    R"(<｜DSML｜ parameter name="{key}" string="{is_string}">)";
inline constexpr std::string_view kParameterClose = "</｜DSML｜ parameter>";
// The parameter that takes arguments which are no JSON object.
inline constexpr std::string_view kFallbackParameter = "arguments";

}  // namespace deepinfer
