// tokenizer.json as it is written: syntax and options checked, names not yet resolved.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/pre_tokenizer.h"

namespace deepinfer {

// Ids lie in [0, kMaxTokenIds).
inline constexpr int64_t kMaxTokenIds = int64_t{1} << 24;

struct TokenizerFile {
  struct VocabEntry {
    std::string spelling;  // in the byte alphabet, unless the entry is an added token
    int32_t id;
  };
  struct MergeEntry {
    std::string left;
    std::string right;
  };
  struct AddedToken {
    std::string content;
    int32_t id;
    bool is_special;
    bool is_normalized;
  };

  std::vector<VocabEntry> vocab;
  std::vector<MergeEntry> merges;
  std::vector<AddedToken> added_tokens;
  std::vector<SplitRule> stages;
};

// Errors as Tokenizer::FromJson says.
Result<TokenizerFile> ReadTokenizerFile(std::string_view json);

// The text in quotes for an error message: valid UTF-8, and not much of it.
std::string QuotedExcerpt(std::string_view text);

}  // namespace deepinfer
