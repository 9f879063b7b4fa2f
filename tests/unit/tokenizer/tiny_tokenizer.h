// Small tokenizer.json documents for tests.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

inline constexpr const char* kNumbersRegex = R"(\p{N}{1,3})";
inline constexpr const char* kCjkRegex = "[一-龥぀-ゟ゠-ヿ]+";
inline constexpr const char* kWordsRegex =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

using Merges = std::vector<std::pair<std::string, std::string>>;

inline nlohmann::json SplitStage(const std::string& regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

inline nlohmann::json AddedTokenJson(int32_t id, const std::string& content, bool special,
                                     bool normalized = false) {
  return {{"id", id},        {"content", content},       {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", normalized}, {"special", special}};
}

// Ids: byte b is token b, merge i (raw bytes, in any tokens that exist by then) makes 256 + i, and
// the added tokens follow.
inline nlohmann::json TinyTokenizerJson(const Merges& merges = {},
                                        const std::vector<nlohmann::json>& added = {}) {
  auto vocab = nlohmann::json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[SpellingOfBytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  auto pairs = nlohmann::json::array();
  for (size_t i = 0; i < merges.size(); ++i) {
    vocab[SpellingOfBytes(merges[i].first + merges[i].second)] = 256 + i;
    pairs.push_back({SpellingOfBytes(merges[i].first), SpellingOfBytes(merges[i].second)});
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {SplitStage(kNumbersRegex),
              SplitStage(kCjkRegex),
              SplitStage(kWordsRegex),
              {{"type", "ByteLevel"},
               {"add_prefix_space", false},
               {"trim_offsets", true},
               {"use_regex", false}}}}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", pairs}}}};
}

inline Tokenizer LoadTokenizer(const nlohmann::json& json) {
  auto tokenizer = Tokenizer::FromJson(json.dump());
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    std::abort();
  }
  return *tokenizer;
}

}  // namespace deepinfer
