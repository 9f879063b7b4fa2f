// Texts of the control tokens (spec chat section 1). Ids come from the checkpoint's added tokens.
#pragma once

#include <array>
#include <string_view>

namespace deepinfer {

inline constexpr std::string_view kBosToken = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEosToken = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kPadToken = "<｜▁pad▁｜>";
inline constexpr std::string_view kSystemToken = "<｜System｜>";
inline constexpr std::string_view kUserToken = "<｜User｜>";
inline constexpr std::string_view kAssistantToken = "<｜Assistant｜>";
inline constexpr std::string_view kLatestReminderToken = "<｜latest_reminder｜>";
inline constexpr std::string_view kThinkOpenToken = "<think>";
inline constexpr std::string_view kThinkCloseToken = "</think>";
inline constexpr std::string_view kDsmlToken = "｜DSML｜";
inline constexpr std::string_view kImageToken = "<｜deepseek_image｜>";
inline constexpr std::string_view kActionToken = "<｜action｜>";
inline constexpr std::string_view kQueryToken = "<｜query｜>";
inline constexpr std::string_view kAuthorityToken = "<｜authority｜>";
inline constexpr std::string_view kDomainToken = "<｜domain｜>";
inline constexpr std::string_view kTitleToken = "<｜title｜>";
inline constexpr std::string_view kReadUrlToken = "<｜read_url｜>";

// Every token above, each once.
inline constexpr std::array<std::string_view, 17> kControlTokens = {
    kBosToken,
    kEosToken,
    kPadToken,
    kSystemToken,
    kUserToken,
    kAssistantToken,
    kLatestReminderToken,
    kThinkOpenToken,
    kThinkCloseToken,
    kDsmlToken,
    kImageToken,
    kActionToken,
    kQueryToken,
    kAuthorityToken,
    kDomainToken,
    kTitleToken,
    kReadUrlToken,
};

}  // namespace deepinfer
