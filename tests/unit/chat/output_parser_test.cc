#include "chat/output_parser.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "chat/tokens.h"
#include "gtest/gtest.h"

namespace deepinfer {
namespace {

using Kind = OutputEvent::Kind;

const std::string kBlockOpen = "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n";
const std::string kBlockClose = "\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";

std::string StringParameter(const std::string& name, const std::string& value) {
  return "<｜DSML｜ parameter name=\"" + name + "\" string=\"true\">" + value +
         "</｜DSML｜ parameter>";
}

// "content:a|begin:f|..." of the events.
std::string Show(const std::vector<OutputEvent>& events) {
  std::string shown;
  for (const OutputEvent& event : events) {
    constexpr const char* kNames[] = {"reasoning", "content", "begin", "arguments", "end", "error"};
    if (!shown.empty()) shown += "|";
    shown += kNames[static_cast<int>(event.kind)];
    shown += ":" + event.text;
  }
  return shown;
}

ParsedOutput Parse(const std::string& text, StartState start = StartState::kAnswer,
                   bool raw_text_on_error = false) {
  return ParseOutput(text, start, {.raw_text_on_error = raw_text_on_error});
}

std::string ErrorOf(const std::string& text) {
  const ParsedOutput output = Parse(text);
  return output.error ? output.error->message : "none";
}

TEST(OutputParser, StreamsTextAtOnceUnlessItMayBeginAMarker) {
  OutputParser parser(StartState::kReasoning);
  EXPECT_EQ(Show(parser.Push("\n\nI th")), "reasoning:I th");
  EXPECT_EQ(Show(parser.Push("ink <")), "reasoning:ink ");
  EXPECT_EQ(Show(parser.Push("b")), "reasoning:<b");
  EXPECT_EQ(Show(parser.Push("\n")), "");
  EXPECT_EQ(Show(parser.Push("</thi")), "");
  EXPECT_EQ(Show(parser.Push("nk>")), "");
  EXPECT_FALSE(parser.in_reasoning());
  EXPECT_EQ(Show(parser.Push("\nHi\n\n")), "content:Hi");
  EXPECT_EQ(Show(parser.Push("\n")), "content:\n");
  EXPECT_EQ(Show(parser.Push("x")), "content:\n\nx");
  EXPECT_EQ(Show(parser.Push("\xe4\xb8")), "");
  EXPECT_EQ(Show(parser.Push("\x96")), "content:世");
  EXPECT_EQ(Show(parser.Finish()), "");
}

TEST(OutputParser, StreamsArgumentsOfStringsAsTheyComeAndJsonWhenChecked) {
  OutputParser parser(StartState::kAnswer);
  EXPECT_EQ(Show(parser.Push("Ok\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\"")), "content:Ok");
  EXPECT_EQ(Show(parser.Push(">")), "begin:f");
  EXPECT_EQ(Show(parser.Push("<｜DSML｜ parameter name=\"a\" string=\"true\">")),
            "arguments:{\"a\": \"");
  EXPECT_EQ(Show(parser.Push("x\n\"")), "arguments:x\\n\\\"");
  EXPECT_EQ(Show(parser.Push("</｜DSML｜")), "");
  EXPECT_EQ(Show(parser.Push("!")), "arguments:</｜DSML｜!");
  EXPECT_EQ(Show(parser.Push("</｜DSML｜ parameter>")), "arguments:\"");
  EXPECT_EQ(Show(parser.Push("<｜DSML｜ parameter name=\"b\" string=\"false\">[1,")), "");
  EXPECT_EQ(Show(parser.Push(" 2]</｜DSML｜ parameter>")), "arguments:, \"b\": [1, 2]");
  EXPECT_EQ(Show(parser.Push("</｜DSML｜ invoke>")), "arguments:}|end:");
  EXPECT_FALSE(parser.done());
  EXPECT_EQ(Show(parser.Push("\n</｜DSML｜ calls>tail")), "");
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(Show(parser.Finish()), "");
}

TEST(OutputParser, ACopyIsAFork) {
  OutputParser parser(StartState::kAnswer);
  parser.Push("a\n<");
  OutputParser fork = parser;
  EXPECT_EQ(Show(parser.Push("b>")), "content:\n<b>");
  EXPECT_EQ(Show(fork.Push("｜User｜>c")), "content:\nc");
}

TEST(OutputParser, NothingFollowsTheEnd) {
  OutputParser parser(StartState::kAnswer);
  EXPECT_EQ(Show(parser.Push("a\n<｜end▁of▁sentence｜>b")), "content:a\n");
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(Show(parser.Push("c")), "");
  EXPECT_EQ(Show(parser.Finish()), "");
  EXPECT_EQ(Show(parser.Finish()), "");
}

TEST(OutputParser, AVoidCallIsNeverEnded) {
  const ParsedOutput output =
      Parse("x\n\n" + kBlockOpen + StringParameter("a", "1") + StringParameter("a", "2"));
  EXPECT_EQ(output.content, "x");
  EXPECT_TRUE(output.tool_calls.empty());
  ASSERT_TRUE(output.open_call);
  EXPECT_EQ(output.open_call->arguments, "{\"a\": \"1\"");
  ASSERT_TRUE(output.error);
  EXPECT_EQ(output.error->message,
            "duplicate_parameter: parameter \"a\" stands twice in the call of \"f\"");
}

TEST(OutputParser, ABrokenCallNeverBecomesPartOfTheNextName) {
  // On one line the broken tag would reach to the next string attribute.
  EXPECT_EQ(
      ErrorOf(kBlockOpen + "<｜DSML｜ parameter name=\"a\" string=true>1</｜DSML｜ parameter>" +
              StringParameter("b", "2") + kBlockClose)
          .substr(0, 14),
      "bad_parameter:");
  EXPECT_EQ(ErrorOf(kBlockOpen + "<｜DSML｜ parameter name=\"a\">1</｜DSML｜ parameter>" +
                    StringParameter("b", "2") + kBlockClose)
                .substr(0, 14),
            "bad_parameter:");
  EXPECT_EQ(ErrorOf("<｜DSML｜ calls><｜DSML｜ invoke name=\"f</｜DSML｜ invoke>").substr(0, 9),
            "bad_name:");
}

TEST(OutputParser, ErrorsShowLongOrBrokenNamesShortenedAsValidText) {
  const std::string message = ErrorOf("<｜DSML｜ invoke name=\"" + std::string(100000, 'n') + "\n");
  EXPECT_EQ(message.substr(0, 9), "bad_name:");
  EXPECT_LT(message.size(), 200u);
  // The name fails at the first byte of a character.
  EXPECT_EQ(ErrorOf("<｜DSML｜ invoke name=\"f\"é"),
            "bad_name: \"f\\\"\" is no function name in quotes on one line");
}

TEST(OutputParser, JsonValuesAreCheckedToTheDepthThatTheArgumentsMayHave) {
  const auto call = [](int depth) {
    return Parse(kBlockOpen + "<｜DSML｜ parameter name=\"a\" string=\"false\">" +
                 std::string(depth, '[') + std::string(depth, ']') + "</｜DSML｜ parameter>" +
                 kBlockClose);
  };
  EXPECT_EQ(call(255).tool_calls.size(), 1u);
  ASSERT_TRUE(call(256).error);
  EXPECT_EQ(call(256).error->kind, OutputErrorKind::kInvalidJson);
  EXPECT_TRUE(call(1 << 20).error);
}

TEST(OutputParser, TheEndTokenEndsMarkupAsTheEndOfTheOutputDoes) {
  const std::string call = kBlockOpen + "\n</｜DSML｜ invoke>\n";
  for (const std::string& text :
       {std::string("a\n\n<｜DSML｜"), std::string("a\n<｜DSML｜ cal"),
        std::string("a</｜DSML｜ cal"), kBlockOpen, std::string("<｜DSML｜ calls>\n"), call,
        call + "<｜DSML｜ inv", call + "</｜DSML｜ cal",
        std::string("<｜DSML｜ calls><｜DSML｜ inv")}) {
    const ParsedOutput ended = Parse(text);
    const ParsedOutput cut = Parse(text + std::string(kEosToken) + "x");
    EXPECT_EQ(ended.content, cut.content) << text;
    EXPECT_EQ(ended.tool_calls, cut.tool_calls) << text;
    EXPECT_EQ(ended.error ? ended.error->message : "", cut.error ? cut.error->message : "") << text;
  }
}

TEST(OutputParser, ATagCutByAHalfEndTokenIsText) {
  EXPECT_EQ(Parse("a<｜DSML｜ cal<｜end").content, "a cal<｜end");
  EXPECT_EQ(Parse("a<｜DSML｜ cal<b").content, "a cal<b");
  EXPECT_EQ(Parse("a<｜DSML｜<think>b").content, "ab");
}

TEST(OutputParser, ACallWithoutOuterTagsEndsItsBlock) {
  const std::string call = "<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>";
  for (const std::string after : {"", "\n", " and more", "\n<b>", "\n<｜DSML｜ calls>\n"}) {
    const ParsedOutput output = Parse("a" + call + after);
    EXPECT_EQ(output.tool_calls.size(), 1u) << after;
    EXPECT_FALSE(output.error) << after;
    EXPECT_EQ(output.content, "a") << after;
  }
  EXPECT_EQ(Parse(call + call).tool_calls.size(), 2u);
}

TEST(OutputParser, RawTextReplacesAFailedBlock) {
  const std::string failed = kBlockOpen + StringParameter("a", "1") + "oops";
  const std::string text = "Hi\n\n" + failed + "\nmore";
  const ParsedOutput output = Parse(text + std::string(kEosToken) + "x", StartState::kAnswer, true);
  EXPECT_EQ(output.content, text);
  EXPECT_TRUE(output.tool_calls.empty());
  EXPECT_FALSE(output.error);
  EXPECT_FALSE(output.open_call);
  const ParsedOutput from_reasoning = Parse("r\n\n" + failed, StartState::kReasoning, true);
  EXPECT_EQ(from_reasoning.reasoning, "r");
  EXPECT_EQ(from_reasoning.content, failed);
}

TEST(OutputParser, RawTextOfAnUnfinishedBlock) {
  for (const std::string& text : {std::string("Hi\n\n<｜DSML｜"), std::string("Hi\n\n<｜DSML｜ ca"),
                                  "Hi\n" + kBlockOpen, std::string("<｜DSML｜ calls>\n<<")}) {
    EXPECT_EQ(Parse(text, StartState::kAnswer, true).content, text);
    EXPECT_EQ(Parse(text + std::string(kEosToken), StartState::kAnswer, true).content, text);
  }
}

TEST(OutputParser, RawTextOptionHoldsCallsUntilTheirBlockIsComplete) {
  OutputParser parser(StartState::kAnswer, {.raw_text_on_error = true});
  EXPECT_EQ(Show(parser.Push(kBlockOpen + "</｜DSML｜ invoke>")), "");
  EXPECT_EQ(Show(parser.Push("</｜DSML｜ calls>")), "begin:f|arguments:{}|end:");
  OutputParser cut(StartState::kAnswer, {.raw_text_on_error = true});
  EXPECT_EQ(Show(cut.Push(kBlockOpen + "</｜DSML｜ invoke>")), "");
  EXPECT_EQ(Show(cut.Finish()), "begin:f|arguments:{}|end:");
}

TEST(OutputParser, NoStartStateIsAnAnswer) {
  EXPECT_EQ(Parse("\nx", StartState::kNone).content, "x");
}

// Each of these took quadratic time in some plausible parser; a megabyte would take minutes.
TEST(OutputParser, LongRunsOfHalfMarkersAreLinear) {
  const auto repeat = [](std::string_view piece) {
    std::string text;
    while (text.size() < (1u << 20)) text += piece;
    return text;
  };
  for (const std::string_view piece :
       {"<", "\n", "｜", "<｜", "</thin", "<｜DSML｜", "<｜DSML", "</｜DSML｜ a", "<｜DSML｜ a<",
        "\n\n<", "<｜end▁of▁sentence｜", "\xe4", "<｜DSML｜ calls"}) {
    const std::string text = repeat(piece);
    for (const StartState start : {StartState::kAnswerContinued, StartState::kReasoning}) {
      OutputParser parser(start);
      ParsedOutput output;
      for (size_t at = 0; at < text.size(); at += 100)
        output.Add(parser.Push(text.substr(at, 100)));
      output.Add(parser.Finish());
      EXPECT_LE(output.content.size() + output.reasoning.size(), 3 * text.size());
    }
  }
  const std::string opener = kBlockOpen + "<｜DSML｜ parameter name=\"";
  for (const std::string_view piece : {"<", "</｜DSML｜ paramete", "\"", "a"}) {
    const std::string value = repeat(piece);
    EXPECT_EQ(Parse(kBlockOpen + StringParameter("a", value) + kBlockClose).tool_calls.size(), 1u);
    EXPECT_TRUE(Parse(opener + value).error);
  }
}

// Comparing every name with all before it would take minutes here.
TEST(OutputParser, ManyParametersAreLinear) {
  std::string text = kBlockOpen;
  for (int i = 0; i < 50000; ++i) text += StringParameter(std::to_string(i), "");
  const ParsedOutput output = Parse(text + kBlockClose);
  EXPECT_FALSE(output.error);
  EXPECT_EQ(output.tool_calls.size(), 1u);
}

}  // namespace
}  // namespace deepinfer
