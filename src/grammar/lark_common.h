// The terminals of Lark's "common" library.
#pragma once

#include <optional>
#include <string_view>

namespace deepinfer::grammar {

// The terminal as a regular expression, or nothing.
std::optional<std::string_view> LarkCommonTerminal(std::string_view name);

}  // namespace deepinfer::grammar
