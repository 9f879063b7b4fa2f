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
  EXPECT_EQ(kEffortLine, literals["effort"]["line"].get<std::string>());
  EXPECT_EQ(kToolsSection, literals["tools_section"].get<std::string>());
  EXPECT_EQ(kSchemaSeparator, literals["schema_separator"].get<std::string>());
  EXPECT_EQ(kSectionSeparator, literals["section_separator"].get<std::string>());
  EXPECT_EQ(kResponseFormatSection, literals["response_format_section"].get<std::string>());
  EXPECT_EQ(std::string(kToolResultOpen) + "{content}" + std::string(kToolResultClose),
            literals["tool_result"].get<std::string>());
  EXPECT_EQ(kUnsupportedBlock, literals["unsupported_block"].get<std::string>());
  EXPECT_EQ(kBlockSeparator, literals["block_separator"].get<std::string>());
  const auto& dsml = literals["dsml"];
  EXPECT_EQ(kCallsOpen, dsml["calls_open"].get<std::string>());
  EXPECT_EQ(kCallsClose, dsml["calls_close"].get<std::string>());
  EXPECT_EQ(kInvokeOpen, dsml["invoke_open"].get<std::string>());
  EXPECT_EQ(kInvokeClose, dsml["invoke_close"].get<std::string>());
  EXPECT_EQ(kParameterOpen, dsml["parameter_open"].get<std::string>());
  EXPECT_EQ(kParameterClose, dsml["parameter_close"].get<std::string>());
  EXPECT_EQ(kBeforeCalls, dsml["before_calls"].get<std::string>());
  EXPECT_EQ(kBetweenTags, dsml["between_tags"].get<std::string>());
  EXPECT_EQ(kFallbackParameter, dsml["fallback_parameter"].get<std::string>());
}

TEST(Literals, TokensHaveTheExactBytes) {
  const auto tokens = ReadLiterals()["tokens"];
  EXPECT_EQ(kBosToken, tokens["bos"].get<std::string>());
  EXPECT_EQ(kEosToken, tokens["eos"].get<std::string>());
  EXPECT_EQ(kPadToken, tokens["pad"].get<std::string>());
  EXPECT_EQ(kSystemToken, tokens["system"].get<std::string>());
  EXPECT_EQ(kUserToken, tokens["user"].get<std::string>());
  EXPECT_EQ(kAssistantToken, tokens["assistant"].get<std::string>());
  EXPECT_EQ(kLatestReminderToken, tokens["latest_reminder"].get<std::string>());
  EXPECT_EQ(kThinkOpenToken, tokens["think_open"].get<std::string>());
  EXPECT_EQ(kThinkCloseToken, tokens["think_close"].get<std::string>());
  EXPECT_EQ(kDsmlToken, tokens["dsml"].get<std::string>());
  EXPECT_EQ(kImageToken, tokens["image"].get<std::string>());
  EXPECT_EQ(kActionToken, tokens["tasks"]["action"].get<std::string>());
  EXPECT_EQ(kQueryToken, tokens["tasks"]["query"].get<std::string>());
  EXPECT_EQ(kAuthorityToken, tokens["tasks"]["authority"].get<std::string>());
  EXPECT_EQ(kDomainToken, tokens["tasks"]["domain"].get<std::string>());
  EXPECT_EQ(kTitleToken, tokens["tasks"]["title"].get<std::string>());
  EXPECT_EQ(kReadUrlToken, tokens["tasks"]["read_url"].get<std::string>());
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
  EXPECT_EQ(ChatOptions().reasoning_effort,
            effort["names"][effort["default"].get<std::string>()].get<int>());
}

}  // namespace
}  // namespace deepinfer
