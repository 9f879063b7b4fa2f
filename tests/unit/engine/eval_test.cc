#include "engine/eval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace deepinfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ParsedOutput Answer(std::string content) {
  ParsedOutput output;
  output.content = std::move(content);
  return output;
}

TEST(EvalChecker, ExactComparesEveryByte) {
  EXPECT_TRUE(IsCorrect(Checker::kExact, R"("a b")", Answer("a b")));
  EXPECT_FALSE(IsCorrect(Checker::kExact, R"("a b")", Answer("a b ")));
  EXPECT_FALSE(IsCorrect(Checker::kExact, R"("a b")", Answer("A b")));
}

TEST(EvalChecker, NumberTakesTheLastInteger) {
  EXPECT_TRUE(IsCorrect(Checker::kNumber, "9165", Answer("9165加0等于9165。")));
  EXPECT_TRUE(IsCorrect(Checker::kNumber, "-4", Answer("3 - 7 = -4.")));
  EXPECT_TRUE(IsCorrect(Checker::kNumber, "7", Answer("So it is 007")));
  EXPECT_TRUE(IsCorrect(Checker::kNumber, "0", Answer("-0")));
  EXPECT_FALSE(IsCorrect(Checker::kNumber, "9165", Answer("9165 + 1")));
  EXPECT_FALSE(IsCorrect(Checker::kNumber, "1", Answer("none")));
  EXPECT_FALSE(IsCorrect(Checker::kNumber, "4", Answer("-4")));
}

TEST(EvalChecker, JsonIgnoresKeyOrderOnly) {
  const char* answer = R"("{\"a\": 1, \"b\": [2, 3]}")";
  EXPECT_TRUE(IsCorrect(Checker::kJson, answer, Answer(R"({"b":[2,3],"a":1})")));
  EXPECT_FALSE(IsCorrect(Checker::kJson, answer, Answer(R"({"b":[3,2],"a":1})")));
  EXPECT_FALSE(IsCorrect(Checker::kJson, answer, Answer(R"({"b":[2,3],"a":1}})")));
  EXPECT_FALSE(IsCorrect(Checker::kJson, answer, Answer("")));
}

TEST(EvalChecker, ToolCallsCompareNamesArgumentsAndOrder) {
  const char* answer = R"([{"name": "f", "arguments": {"x": 1, "y": "z"}},
                           {"name": "g", "arguments": {}}])";
  ParsedOutput output;
  output.tool_calls = {{"f", R"({"y": "z", "x": 1})"}, {"g", "{}"}};
  EXPECT_TRUE(IsCorrect(Checker::kToolCall, answer, output));
  std::swap(output.tool_calls[0], output.tool_calls[1]);
  EXPECT_FALSE(IsCorrect(Checker::kToolCall, answer, output));
  output.tool_calls.pop_back();
  EXPECT_FALSE(IsCorrect(Checker::kToolCall, answer, output));
}

TEST(EvalChecker, BrokenOutputAndUnaskedCallsAreWrong) {
  ParsedOutput output = Answer("a");
  output.tool_calls = {{"f", "{}"}};
  EXPECT_FALSE(IsCorrect(Checker::kExact, R"("a")", output));
  output.tool_calls.clear();
  EXPECT_TRUE(IsCorrect(Checker::kExact, R"("a")", output));
  output.error = OutputError{};
  EXPECT_FALSE(IsCorrect(Checker::kExact, R"("a")", output));
}

TEST(Eval, TaskFilesAreReadAndBadLinesNamed) {
  const std::string item =
      R"({"id": "a-0", "mode": "thinking", "messages": [{"role": "user", "content": "x"}],)"
      R"( "tools": null, "answer": 3, "checker": "number", "reference": {}})";
  const auto task = ParseEvalTask("a", item + "\n\n");
  ASSERT_TRUE(task) << task.error().message;
  ASSERT_EQ(task->items.size(), 1u);
  EXPECT_EQ(task->items[0].answer_json, "3");
  EXPECT_EQ(task->items[0].request.options.thinking_mode, ThinkingMode::kThinking);
  EXPECT_THAT(ParseEvalTask("a", item + "\n{}\n").error().message, HasSubstr("task a, line 2"));
  EXPECT_THAT(ParseEvalTask("a", item + "\n" + item).error().message, HasSubstr("a-0"));
  EXPECT_FALSE(ParseEvalTask("a", ""));
}

TEST(Eval, ComparisonLooksAtTheItemsThatBothMeasured) {
  const auto expected = ParseExpectedResults(
      R"({"accuracy": {"t": 0.5}, "items": {"t": 2}, "failed_ids": ["t-1", "u-0"]})");
  ASSERT_TRUE(expected);
  const std::vector<TaskResult> results = {{"t", {"t-0", "t-1", "t-2"}, {"t-0", "t-2"}},
                                           {"unknown", {"v-0"}, {}}};
  const auto comparisons = CompareResults(results, *expected);
  ASSERT_EQ(comparisons.size(), 1u);
  EXPECT_EQ(comparisons[0].items, 2);
  EXPECT_EQ(comparisons[0].accuracy, 0.5);
  EXPECT_THAT(comparisons[0].now_failing, ElementsAre("t-0"));
  EXPECT_THAT(comparisons[0].now_passing, ElementsAre("t-1"));
  EXPECT_FALSE(ParseExpectedResults("{}"));
}

TEST(Eval, TheReportHasAccuracyItemsAndFailures) {
  PerplexityResult perplexity;
  perplexity.tokens = 2;
  perplexity.bytes = 4;
  perplexity.nats = 2 * std::log(8.0);
  EXPECT_NEAR(perplexity.perplexity(), 8, 1e-12);
  EXPECT_NEAR(perplexity.bits_per_byte(), 1.5, 1e-12);
  const std::string report = EvalReportJson({{"t", {"t-0", "t-1"}, {"t-1"}}}, &perplexity, {}, 512);
  EXPECT_THAT(report, HasSubstr("\"tasks\""));
  EXPECT_THAT(report, HasSubstr("\"accuracy\": 0.5"));
  EXPECT_THAT(report, HasSubstr("\"items\": 2"));
  EXPECT_THAT(report, HasSubstr("\"t-1\""));
  EXPECT_THAT(report, HasSubstr("\"prefill_mode\": \"off\""));
}

}  // namespace
}  // namespace deepinfer
