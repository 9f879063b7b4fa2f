// The syntax of tokenizer.json: one pass that streams the two big tables, vocabulary and merges,
// and keeps the small rest as a tree.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "tokenizer/tokenizer_file.h"

namespace deepinfer {

// Fills `file.vocab` and `file.merges` and returns everything else; model.vocab and model.merges
// stand there as null. Refuses repeated keys and ids outside [0, kMaxTokenIds).
Result<nlohmann::json> ParseTokenizerJson(std::string_view json, TokenizerFile& file);

}  // namespace deepinfer
