// Tool calls that the masks lead to, read back by the parser of outputs.
#include "grammar/json_schema/dsml.h"

#include <random>

#include "chat/output_parser.h"
#include "tests/unit/grammar/json_schema/json_schema_test_util.h"

namespace deepinfer::grammar {
namespace {

constexpr const char* kWeather = R"({"type": "object", "properties": {
    "city": {"type": "string", "minLength": 1}, "days": {"type": "integer", "minimum": 1},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    "unit": {"enum": ["C", "F", null]}}, "required": ["city"]})";
constexpr const char* kStore = R"({"type": "object", "additionalProperties": {"type": "number"},
                                   "maxProperties": 1})";

const std::vector<DsmlTool>& Tools() {
  static const std::vector<DsmlTool> tools = {
      {"get_weather", kWeather}, {"store", kStore}, {"now", R"({"properties": {}})"}};
  return tools;
}

// Id 257 is the control token of DSML.
constexpr int32_t kMarkerToken = 257;

std::shared_ptr<const Vocabulary> MarkerVocabulary() {
  std::vector<std::string> tokens = {""};
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* word : {"", "\">", " invoke name=\"", "true", "</", "\n<", "｜", "ab"}) {
    tokens.emplace_back(word);
  }
  return *Vocabulary::Create(std::move(tokens), {0}, {kMarkerToken});
}

Result<std::shared_ptr<const CompiledGrammar>> CompileTools(DsmlOptions options) {
  options.marker = Vocabulary::MarkerByte(0);
  Budget budget{Limits()};
  DI_ASSIGN_OR_RETURN(GrammarIr ir, DsmlToIr(Tools(), options, budget));
  return CompiledGrammar::Create(std::move(ir), MarkerVocabulary(), budget);
}

// The text of a random way through the masks. After a while it prefers what closes things.
std::optional<std::string> Walk(const std::shared_ptr<const CompiledGrammar>& grammar,
                                uint32_t seed) {
  std::mt19937 random(seed);
  Matcher matcher(grammar);
  const Vocabulary& vocabulary = grammar->vocabulary();
  std::vector<uint32_t> mask(vocabulary.mask_words());
  std::string text;
  for (int step = 0; step < 2000; ++step) {
    EXPECT_TRUE(matcher.FillMask(mask).has_value());
    std::vector<int32_t> allowed, closing;
    for (int32_t token = 0; token < vocabulary.size(); ++token) {
      if (((mask[static_cast<size_t>(token) / 32] >> (token % 32)) & 1) == 0) continue;
      allowed.push_back(token);
      const std::string_view bytes = vocabulary.token_bytes(token);
      if (token == 0 || token == kMarkerToken || bytes == "<" || bytes == "</" || bytes == "\"" ||
          bytes == "]" || bytes == "1") {
        closing.push_back(token);
      }
    }
    EXPECT_FALSE(allowed.empty());
    const auto& from = !closing.empty() && random() % 4 != 0 ? closing : allowed;
    const int32_t token = from[random() % from.size()];
    EXPECT_TRUE(matcher.Advance(token).has_value());
    if (matcher.has_ended()) return text;
    text += token == kMarkerToken ? "｜DSML｜" : vocabulary.token_bytes(token);
  }
  return std::nullopt;
}

// Every call names a tool and has arguments that its schema allows; returns how many there were.
size_t CheckCalls(const std::string& text) {
  const ParsedOutput output = ParseOutput(text, StartState::kAnswer);
  EXPECT_FALSE(output.error.has_value()) << text << output.error->message;
  EXPECT_FALSE(output.open_call.has_value()) << text;
  for (const ParsedToolCall& call : output.tool_calls) {
    const auto tool = std::find_if(Tools().begin(), Tools().end(),
                                   [&](const DsmlTool& t) { return t.name == call.name; });
    EXPECT_NE(tool, Tools().end()) << text;
    if (tool == Tools().end()) continue;
    EXPECT_TRUE(IsInstance(tool->parameters, call.arguments)) << text;
  }
  return output.tool_calls.size();
}

TEST(Dsml, RequiredCallsParseBackIntoInstances) {
  DsmlOptions options;
  options.choice = DsmlOptions::Choice::kRequired;
  const auto grammar = CompileTools(options);
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  size_t finished = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const auto text = Walk(*grammar, seed);
    if (!text) continue;
    ++finished;
    EXPECT_GE(CheckCalls(*text), 1u) << *text;
  }
  EXPECT_GE(finished, 20u);
}

TEST(Dsml, NamedChoiceIsOneCallOfThatTool) {
  DsmlOptions options;
  options.choice = DsmlOptions::Choice::kNamed;
  options.name = "now";
  const auto grammar = CompileTools(options);
  ASSERT_TRUE(grammar.has_value());
  Matcher matcher(*grammar);
  EXPECT_EQ(matcher.ForcedBytes(), "");  // line ends may come first
  ASSERT_TRUE(matcher.AdvanceBytes("\n\n").has_value());
  const std::string m(1, Vocabulary::MarkerByte(0));
  EXPECT_EQ(matcher.ForcedBytes(), "<" + m + " calls>\n<" + m + " invoke name=\"now\">\n\n</" + m +
                                       " invoke>\n</" + m + " calls>");
}

TEST(Dsml, AutoIsAnyTextUntilABlockOpens) {
  const auto grammar = CompileTools({});
  ASSERT_TRUE(grammar.has_value());
  const std::string m(1, Vocabulary::MarkerByte(0));
  Matcher matcher(*grammar);
  ASSERT_TRUE(matcher.AdvanceBytes("Let me look < that up.\n\n").has_value());
  EXPECT_TRUE(matcher.CanEnd());
  Matcher spelled = matcher;
  EXPECT_FALSE(spelled.AdvanceBytes("<｜DSML｜").has_value());
  ASSERT_TRUE(matcher.AdvanceBytes("<" + m).has_value());
  EXPECT_FALSE(matcher.CanEnd());
  EXPECT_FALSE(matcher.AdvanceBytes(" calls>\n<" + m + " invoke name=\"other").has_value());
  ASSERT_TRUE(matcher.AdvanceBytes(" calls>\n<" + m + " invoke name=\"store\">\n").has_value());
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const auto text = Walk(*grammar, seed);
    if (text) CheckCalls(*text);
  }
}

TEST(Dsml, StringsAreRawAndNeverHoldTheirCloser) {
  DsmlOptions options;
  options.choice = DsmlOptions::Choice::kNamed;
  options.name = "get_weather";
  const auto grammar = CompileTools(options);
  ASSERT_TRUE(grammar.has_value());
  const std::string m(1, Vocabulary::MarkerByte(0));
  Matcher matcher(*grammar);
  const std::string open = "<" + m + " calls>\n<" + m + " invoke name=\"get_weather\">\n";
  ASSERT_TRUE(matcher.AdvanceBytes(open + "<" + m + " parameter name=\"city\" string=\"true\">")
                  .has_value());
  Matcher empty = matcher;
  EXPECT_FALSE(empty.AdvanceBytes("</" + m).has_value());  // minLength
  ASSERT_TRUE(matcher.AdvanceBytes("\"Bergen\"\n</ x").has_value());
  ASSERT_TRUE(matcher.AdvanceBytes("</" + m + " parameter>\n</" + m + " invoke>").has_value());
  Matcher number(*grammar);
  EXPECT_FALSE(number.AdvanceBytes(open + "<" + m + " parameter name=\"days\" string=\"true\">")
                   .has_value());
  Matcher tags(*grammar);
  ASSERT_TRUE(tags.AdvanceBytes(open + "<" + m + " parameter name=\"tags\" string=\"false\">[\"")
                  .has_value());
  EXPECT_FALSE(tags.AdvanceBytes("｜").has_value());
  EXPECT_TRUE(tags.AdvanceBytes("\\uff5c\"]</").has_value());
}

TEST(Dsml, ErrorsNameTheTool) {
  const auto error_of = [](std::vector<DsmlTool> tools, DsmlOptions options) {
    Budget budget{Limits()};
    const auto ir = DsmlToIr(tools, options, budget);
    return ir ? std::string() : ir.error().message;
  };
  EXPECT_THAT(error_of({{"f", R"({"properties": {"a": {"uniqueItems": true}}})"}}, {}),
              testing::AllOf(testing::HasSubstr("tool f"),
                             testing::HasSubstr("#/properties/a/uniqueItems")));
  EXPECT_THAT(error_of({{"f", ""}, {"f", ""}}, {}), testing::HasSubstr("two tools are named f"));
  EXPECT_THAT(error_of({{"a\"b", ""}}, {}), testing::HasSubstr("name cannot be written"));
  DsmlOptions named;
  named.choice = DsmlOptions::Choice::kNamed;
  named.name = "g";
  EXPECT_THAT(error_of({{"f", ""}}, named), testing::HasSubstr("named g"));
}

}  // namespace
}  // namespace deepinfer::grammar
