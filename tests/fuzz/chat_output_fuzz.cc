// The output parser must give the same for every split of the same bytes, hand out whole
// characters only, and never complete a call whose arguments are no JSON object.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_json.h"
#include "chat/output_parser.h"

namespace deepinfer {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

bool IsUtf8(std::string_view text) {
  std::string escaped = "\"";
  AppendJsonEscaped(text, escaped);
  return CheckJson(escaped + "\"").empty();
}

bool Same(const ParsedOutput& a, const ParsedOutput& b) {
  const bool same_error =
      a.error.has_value() == b.error.has_value() &&
      (!a.error || (a.error->kind == b.error->kind && a.error->message == b.error->message));
  return a.reasoning == b.reasoning && a.content == b.content && a.tool_calls == b.tool_calls &&
         a.open_call == b.open_call && same_error;
}

void Add(const std::vector<OutputEvent>& events, ParsedOutput& output) {
  for (const OutputEvent& event : events) {
    Require(IsUtf8(event.text), "every event is valid UTF-8");
    Require(!output.error, "nothing follows an error");
  }
  output.Add(events);
}

// Cuts into pieces of the given sizes in turn, continuing on a copy at every cut.
ParsedOutput ParsePieces(std::string_view text, StartState start, OutputParserOptions options,
                         const std::vector<size_t>& sizes) {
  OutputParser parser(start, options);
  ParsedOutput output;
  for (size_t i = 0; !text.empty(); ++i) {
    const size_t size = std::min(sizes[i % sizes.size()], text.size());
    OutputParser fork = parser;
    const bool was_done = parser.done();
    const auto events = fork.Push(text.substr(0, size));
    Require(!was_done || events.empty(), "nothing follows the end");
    Add(events, output);
    parser = fork;
    text.remove_prefix(size);
  }
  Add(parser.Finish(), output);
  Require(parser.done() && parser.Finish().empty(), "Finish is the end");
  return output;
}

void CheckOutput(const ParsedOutput& output, size_t num_bytes, OutputParserOptions options) {
  // A byte gives at most one replacement character.
  Require(output.reasoning.size() + output.content.size() <= 3 * num_bytes, "no text is invented");
  Require(!(options.raw_text_on_error && output.error), "raw text replaces every error");
  Require(output.error || !output.open_call, "a call is left open only by an error");
  for (const ParsedToolCall& call : output.tool_calls) {
    Require(!call.name.empty(), "a call has a name");
    Require(call.arguments.starts_with('{') && CheckJson(call.arguments).empty(),
            "arguments are a JSON object");
  }
}

}  // namespace
}  // namespace deepinfer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  if (size < 2) return 0;
  // Two bytes choose the start, the option and the cuts; the rest is the output.
  constexpr StartState kStarts[] = {StartState::kAnswer, StartState::kReasoning,
                                    StartState::kAnswerContinued, StartState::kNone};
  const StartState start = kStarts[data[0] % 4];
  const OutputParserOptions options{.raw_text_on_error = (data[0] & 4) != 0};
  const std::vector<size_t> sizes = {size_t{data[1]} % 7 + 1, size_t{data[1]} / 7 + 1, 3};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);

  const ParsedOutput whole = ParseOutput(text, start, options);
  CheckOutput(whole, text.size(), options);
  Require(Same(whole, ParsePieces(text, start, options, sizes)), "pieces agree with the whole");
  Require(Same(whole, ParsePieces(text, start, options, {1})), "bytes agree with the whole");
  return 0;
}
