#include "config/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

Status SetOption(std::string_view name, std::string_view text, Options& options) {
  const OptionSpec* spec = FindOption(name);
  EXPECT_NE(spec, nullptr) << name;
  return spec->set(*spec, text, options);
}

TEST(OptionTable, NamesAndVariablesAreUniqueAndWellFormed) {
  std::set<std::string_view> names;
  std::set<std::string_view> variables;
  for (const OptionSpec& spec : OptionTable()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_TRUE(variables.insert(spec.environment).second) << spec.environment;
    EXPECT_EQ(spec.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos);
    EXPECT_TRUE(spec.environment.starts_with("DEEPINFER_"));
    EXPECT_FALSE(spec.value_name.empty());
    EXPECT_TRUE(spec.help.ends_with(".")) << spec.name;
  }
  for (const OtherVariable& variable : OtherVariables()) {
    EXPECT_TRUE(variables.insert(variable.name).second) << variable.name;
  }
}

TEST(OptionTable, EveryDefaultIsAValueThatTheOptionAccepts) {
  for (const OptionSpec& spec : OptionTable()) {
    Options options;
    const std::string text = spec.get(options);
    if (spec.kind == OptionKind::kText && text.empty()) continue;
    EXPECT_TRUE(spec.set(spec, text, options).has_value()) << spec.name << " " << text;
    EXPECT_EQ(spec.get(options), text) << spec.name;
  }
}

TEST(OptionTable, EveryChoiceReadsBackAsItself) {
  for (const OptionSpec& spec : OptionTable()) {
    for (std::string_view choice : spec.choices) {
      Options options;
      ASSERT_TRUE(spec.set(spec, choice, options).has_value()) << spec.name << " " << choice;
      EXPECT_EQ(spec.get(options), choice);
    }
  }
}

TEST(OptionTable, ChoicesMatchTheirEnumerators) {
  Options options;
  ASSERT_TRUE(SetOption("prefill-mode", "compact", options));
  EXPECT_EQ(options.prefill_mode, PrefillMode::kCompact);
  ASSERT_TRUE(SetOption("check-weights", "none", options));
  EXPECT_EQ(options.check_weights, CheckWeights::kNone);
  ASSERT_TRUE(SetOption("log-level", "debug", options));
  EXPECT_EQ(options.log_level, LogLevel::kDebug);
  ASSERT_TRUE(SetOption("log-level", "off", options));
  EXPECT_EQ(options.log_level, LogLevel::kOff);
}

// Every option is written through its own field: a copied table row would show here.
TEST(OptionTable, EachOptionChangesItsOwnFieldOnly) {
  for (const OptionSpec& spec : OptionTable()) {
    Options options;
    std::string text = "3";
    if (spec.kind == OptionKind::kReal) text = "0.25";
    if (spec.kind == OptionKind::kInteger && spec.integer_max < 3) {
      text = std::to_string(spec.get(options) == "0" ? spec.integer_max : spec.integer_min);
    }
    if (spec.kind == OptionKind::kChoice) {
      text = spec.choices[spec.choices.front() == spec.get(options) ? 1 : 0];
    }
    ASSERT_TRUE(spec.set(spec, text, options).has_value()) << spec.name;
    for (const OptionSpec& other : OptionTable()) {
      EXPECT_EQ(other.get(options), &other == &spec ? text : other.get(Options{}))
          << spec.name << " against " << other.name;
    }
  }
}

TEST(OptionTable, RangeEndsAreAllowedAndOnePastIsNot) {
  for (const OptionSpec& spec : OptionTable()) {
    if (spec.kind != OptionKind::kInteger) continue;
    Options options;
    EXPECT_TRUE(spec.set(spec, std::to_string(spec.integer_min), options)) << spec.name;
    EXPECT_TRUE(spec.set(spec, std::to_string(spec.integer_max), options)) << spec.name;
    EXPECT_FALSE(spec.set(spec, std::to_string(spec.integer_min - 1), options)) << spec.name;
    const auto past = static_cast<uint64_t>(spec.integer_max) + 1;
    EXPECT_FALSE(spec.set(spec, std::to_string(past), options)) << spec.name;
  }
}

TEST(OptionTable, RefusesWhatIsNotWhollyANumber) {
  for (const char* text :
       {"", " ", "1 ", " 1", "1x", "0x10", "1.5", "+1", "1e3", "99999999999999999999", "nan"}) {
    Options options;
    const Status status = SetOption("threads", text, options);
    ASSERT_FALSE(status.has_value()) << text;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(status.error().message, HasSubstr("an integer from 0 to 1024"));
    EXPECT_EQ(options.threads, 0);
  }
  for (const char* text : {"", "nan", "inf", "-0.1", "1.5", "0,5", "1e999"}) {
    Options options;
    EXPECT_FALSE(SetOption("min-p", text, options).has_value()) << text;
  }
}

TEST(OptionTable, AnOpenRangeRefusesItsEnd) {
  Options options;
  EXPECT_FALSE(SetOption("top-p", "0", options).has_value());
  EXPECT_FALSE(SetOption("top-p", "-0", options).has_value());
  ASSERT_TRUE(SetOption("top-p", "0.001", options).has_value());
  EXPECT_EQ(options.top_p, 0.001);
}

TEST(OptionTable, ChoicesAreCaseSensitiveAndListedInTheError) {
  Options options;
  const Status status = SetOption("prefill-mode", "Compact", options);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "\"Compact\" is not one of off, compact");
}

TEST(OptionTable, AnEmptyModelIsRefusedNotTakenAsTheDefault) {
  Options options;
  EXPECT_FALSE(SetOption("model", "", options).has_value());
}

TEST(OptionTable, HelpSaysRangeDefaultAndVariable) {
  const std::string help = OptionHelp(*FindOption("prefill-keep-tokens"));
  EXPECT_THAT(help, HasSubstr("an integer from 1 to 1048576; default 140"));
  EXPECT_THAT(help, HasSubstr("DEEPINFER_YOCO_PREFILL_KEEP_TOKENS"));
}

TEST(OptionTable, TheDocumentNamesEveryOptionAndVariable) {
  const std::string document = OptionsMarkdown();
  for (const OptionSpec& spec : OptionTable()) {
    EXPECT_THAT(document, HasSubstr("`--" + std::string(spec.name) + " "));
    EXPECT_THAT(document, HasSubstr("`" + std::string(spec.environment) + "`"));
  }
  for (const OtherVariable& variable : OtherVariables()) {
    EXPECT_THAT(document, HasSubstr("`" + std::string(variable.name) + "`"));
  }
}

}  // namespace
}  // namespace deepinfer
