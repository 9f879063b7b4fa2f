// JSON as configuration and index files need it: no duplicate keys, bounded depth, valid UTF-8.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace deepinfer {

// Deepest nesting of arrays and objects that ParseStrictJson accepts.
constexpr int kMaxJsonDepth = 64;

// Errors name `what` (a file or a document) and the line and column; their code is kDataLoss.
// Callers include <nlohmann/json.hpp> themselves.
Result<nlohmann::json> ParseStrictJson(std::string_view text, std::string_view what);

// The value as one line of printable ASCII, cut at about 80 characters: for error messages.
std::string ShownJson(const nlohmann::json& value);

}  // namespace deepinfer
