#include "config/option_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace deepinfer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OptionParser : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/option_parser.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path ConfigFile(std::string_view contents) {
    const std::filesystem::path path = folder_ / "config.json";
    std::ofstream(path) << contents;
    return path;
  }

  // The message of the error that a config file of these contents gives.
  std::string ConfigFileError(std::string_view contents) {
    const auto resolved = ResolveOptions({}, {}, ConfigFile(contents));
    return resolved ? "accepted" : resolved.error().message;
  }

  std::filesystem::path folder_;
};

TEST_F(OptionParser, NothingGivenGivesTheDefaults) {
  const auto resolved = ResolveOptions({}, {}, std::nullopt);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->values.prefill_keep_tokens, 140);
  EXPECT_EQ(resolved->values.prefill_mode, PrefillMode::kOff);
  EXPECT_EQ(resolved->values.threads, 0);
  EXPECT_THAT(resolved->sources, IsEmpty());
  EXPECT_THAT(resolved->warnings, IsEmpty());
}

TEST_F(OptionParser, CommandLineGoesBeforeEnvironmentBeforeConfigFile) {
  const auto file = ConfigFile(R"({"threads": 1, "top-k": 10, "seed": "7"})");
  const Environment environment = {{"DEEPINFER_THREADS", "2"}, {"DEEPINFER_TOP_K", "20"}};
  const auto resolved = ResolveOptions({{"threads", "3"}}, environment, file);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->values.threads, 3);
  EXPECT_EQ(resolved->values.top_k, 20);
  EXPECT_EQ(resolved->values.seed, 7);
  EXPECT_EQ(resolved->sources.at("threads"), OptionSource::kCommandLine);
  EXPECT_EQ(resolved->sources.at("top-k"), OptionSource::kEnvironment);
  EXPECT_EQ(resolved->sources.at("seed"), OptionSource::kConfigFile);
  EXPECT_FALSE(resolved->sources.contains("top-p"));
}

TEST_F(OptionParser, TheOriginalsVariablesKeepTheirMeaning) {
  const auto resolved = ResolveOptions({},
                                       {{"DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE", "compact"},
                                        {"DEEPINFER_YOCO_PREFILL_KEEP_TOKENS", "200"},
                                        {"DEEPINFER_HF_MODEL_DIR", "/models/flash"}},
                                       std::nullopt);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->values.prefill_mode, PrefillMode::kCompact);
  EXPECT_EQ(resolved->values.prefill_keep_tokens, 200);
  EXPECT_EQ(resolved->values.model, "/models/flash");
}

TEST_F(OptionParser, OfAFlagGivenTwiceTheLastCounts) {
  const auto resolved = ResolveOptions({{"seed", "1"}, {"seed", "2"}}, {}, std::nullopt);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(resolved->values.seed, 2);
}

TEST_F(OptionParser, AnEmptyVariableCountsAsUnset) {
  const auto resolved =
      ResolveOptions({}, {{"DEEPINFER_THREADS", ""}, {"DEEPINFER_CONFIG", ""}}, std::nullopt);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->values.threads, 0);
}

TEST_F(OptionParser, ErrorsNameOptionSourceValueAndRange) {
  auto resolved = ResolveOptions({{"threads", "-1"}}, {}, std::nullopt);
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().message,
            "option threads: \"-1\" is not an integer from 0 to 1024 (from command line)");
  resolved = ResolveOptions({}, {{"DEEPINFER_TOP_P", "two"}}, std::nullopt);
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().message,
            "option top-p: \"two\" is not a number above 0 and at most 1 (from environment "
            "variable DEEPINFER_TOP_P)");
  EXPECT_THAT(ConfigFileError(R"({"check-weights": "some"})"),
              AllOf(HasSubstr("option check-weights: \"some\" is not one of auto, all, none"),
                    HasSubstr("config.json")));
}

// A wrong value must not hide behind a right one of higher precedence.
TEST_F(OptionParser, AWrongValueIsAnErrorEvenWhereItWouldBeOverridden) {
  EXPECT_FALSE(ResolveOptions({{"threads", "2"}}, {{"DEEPINFER_THREADS", "many"}}, std::nullopt));
}

TEST_F(OptionParser, UnknownNamesOnTheCommandLineAreErrors) {
  const auto resolved = ResolveOptions({{"thread", "1"}}, {}, std::nullopt);
  ASSERT_FALSE(resolved);
  EXPECT_THAT(resolved.error().message, HasSubstr("--thread "));
}

TEST_F(OptionParser, UnknownVariablesAreWarnedAboutByName) {
  const auto resolved = ResolveOptions(
      {}, {{"DEEPINFER_THREAD", "1"}, {"DEEPINFER_SOMETHING_ELSE", "1"}, {"OTHER", "1"}},
      std::nullopt);
  ASSERT_TRUE(resolved);
  EXPECT_THAT(resolved->warnings,
              ElementsAre(AllOf(HasSubstr("DEEPINFER_SOMETHING_ELSE is ignored"),
                                ::testing::Not(HasSubstr("did you mean"))),
                          AllOf(HasSubstr("DEEPINFER_THREAD is ignored"),
                                HasSubstr("did you mean DEEPINFER_THREADS?"))));
}

TEST_F(OptionParser, BuildAndTestVariablesAreNotWarnedAbout) {
  const auto resolved = ResolveOptions(
      {}, {{"DEEPINFER_ACCELERATOR", "cpu"}, {"DEEPINFER_REQUIRE_GOLDENS", "1"}}, std::nullopt);
  ASSERT_TRUE(resolved);
  EXPECT_THAT(resolved->warnings, IsEmpty());
}

TEST_F(OptionParser, TheConfigVariableNamesAFileUnlessTheCommandLineDoes) {
  const auto file = ConfigFile(R"({"threads": 4})");
  auto resolved = ResolveOptions({}, {{"DEEPINFER_CONFIG", file.string()}}, std::nullopt);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->values.threads, 4);
  resolved = ResolveOptions({}, {{"DEEPINFER_CONFIG", "/nonexistent/file"}}, file);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->values.threads, 4);
}

TEST_F(OptionParser, AMissingConfigFileIsAnErrorThatNamesIt) {
  const auto resolved = ResolveOptions({}, {}, folder_ / "absent.json");
  ASSERT_FALSE(resolved);
  EXPECT_THAT(resolved.error().message, HasSubstr("absent.json"));
}

TEST_F(OptionParser, ConfigFilesOfTheWrongFormAreRefused) {
  for (const char* contents : {"", "[]", "3", "{", R"({"threads": 1,})", "{\"a\xff\": 1}",
                               R"({"threads": 1, "threads": 2})"}) {
    EXPECT_THAT(ConfigFileError(contents), HasSubstr("config.json")) << contents;
  }
  EXPECT_THAT(ConfigFileError(R"({"thread": 1})"), HasSubstr("unknown key \"thread\""));
  for (const char* value : {"true", "null", "[1]", "{}"}) {
    EXPECT_THAT(ConfigFileError(std::string(R"({"threads": )") + value + "}"),
                HasSubstr(std::string("option threads: ") + value + " is not an integer"))
        << value;
  }
  EXPECT_THAT(ConfigFileError(R"({"threads": 1.5})"), HasSubstr("\"1.5\" is not an integer"));
  EXPECT_THAT(ConfigFileError(R"({"model": 7})"), HasSubstr("option model: 7 is not"));
  EXPECT_THAT(ConfigFileError(R"({"cpu-target": "mmx"})"), HasSubstr("one of auto, reference"));
}

TEST_F(OptionParser, ReadsItsOwnVariablesFromTheProcess) {
  ASSERT_EQ(setenv("DEEPINFER_SEED", "a=b", 1), 0);
  const Environment environment = ReadEnvironment();
  ASSERT_EQ(unsetenv("DEEPINFER_SEED"), 0);
  EXPECT_EQ(environment.at("DEEPINFER_SEED"), "a=b");
  EXPECT_FALSE(environment.contains("PATH"));
}

}  // namespace
}  // namespace deepinfer
