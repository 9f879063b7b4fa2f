// The texts of the prompt format against tests/golden/data/chat/literals.json.
#include "chat/literals.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "chat/message.h"
#include "chat/tokens.h"
#include "gtest/gtest.h"

namespace deepinfer {
namespace {

nlohmann::json ReadLiterals() {
  std::ifstream in(DEEPINFER_SOURCE_DIR "/tests/golden/data/chat/literals.json");
  return nlohmann::json::parse(in);
}

TEST(Literals, PromptTextsHaveTheExactBytes) {
  const auto literals = ReadLiterals();
  EXPECT_EQ(kEffortLine, literals["effort"]["line"]);
  EXPECT_EQ(kToolsSection, literals["tools_section"]);
  EXPECT_EQ(kSchemaSeparator, literals["schema_separator"]);
  EXPECT_EQ(kSectionSeparator, literals["section_separator"]);
  EXPECT_EQ(kResponseFormatSection, literals["response_format_section"]);
  EXPECT_EQ(std::string(kToolResultOpen) + "{content}" + std::string(kToolResultClose),
            literals["tool_result"]);
  EXPECT_EQ(kUnsupportedBlock, literals["unsupported_block"]);
  EXPECT_EQ(kBlockSeparator, literals["block_separator"]);
  const auto& dsml = literals["dsml"];
  EXPECT_EQ(kCallsOpen, dsml["calls_open"]);
  EXPECT_EQ(kCallsClose, dsml["calls_close"]);
  EXPECT_EQ(kInvokeOpen, dsml["invoke_open"]);
  EXPECT_EQ(kInvokeClose, dsml["invoke_close"]);
  EXPECT_EQ(kParameterOpen, dsml["parameter_open"]);
  EXPECT_EQ(kParameterClose, dsml["parameter_close"]);
  EXPECT_EQ(kBeforeCalls, dsml["before_calls"]);
  EXPECT_EQ(kBetweenTags, dsml["between_tags"]);
  EXPECT_EQ(kFallbackParameter, dsml["fallback_parameter"]);
}

TEST(Literals, TokensHaveTheExactBytes) {
  const auto tokens = ReadLiterals()["tokens"];
  EXPECT_EQ(kBosToken, tokens["bos"]);
  EXPECT_EQ(kEosToken, tokens["eos"]);
  EXPECT_EQ(kPadToken, tokens["pad"]);
  EXPECT_EQ(kSystemToken, tokens["system"]);
  EXPECT_EQ(kUserToken, tokens["user"]);
  EXPECT_EQ(kAssistantToken, tokens["assistant"]);
  EXPECT_EQ(kLatestReminderToken, tokens["latest_reminder"]);
  EXPECT_EQ(kThinkOpenToken, tokens["think_open"]);
  EXPECT_EQ(kThinkCloseToken, tokens["think_close"]);
  EXPECT_EQ(kDsmlToken, tokens["dsml"]);
  EXPECT_EQ(kImageToken, tokens["image"]);
  EXPECT_EQ(kActionToken, tokens["tasks"]["action"]);
  EXPECT_EQ(kQueryToken, tokens["tasks"]["query"]);
  EXPECT_EQ(kAuthorityToken, tokens["tasks"]["authority"]);
  EXPECT_EQ(kDomainToken, tokens["tasks"]["domain"]);
  EXPECT_EQ(kTitleToken, tokens["tasks"]["title"]);
  EXPECT_EQ(kReadUrlToken, tokens["tasks"]["read_url"]);
  // Each is listed once, so that the output parser knows them all.
  EXPECT_EQ(kControlTokens.size(), tokens.size() - 1 + tokens["tasks"].size());
  for (const std::string_view token : kControlTokens) {
    EXPECT_EQ(std::count(kControlTokens.begin(), kControlTokens.end(), token), 1) << token;
  }
}

TEST(Literals, EffortNames) {
  const auto effort = ReadLiterals()["effort"];
  for (const auto& [name, number] : effort["names"].items()) {
    EXPECT_EQ(ParseEffort(name), number.get<int>()) << name;
  }
  EXPECT_EQ(ChatOptions().reasoning_effort, effort["names"][effort["default"].get<std::string>()]);
}

}  // namespace
}  // namespace deepinfer
