// Chooses the configuration of a checkpoint that is about to be made.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace deepinfer {

struct CheckpointDesign {
  // "release": the dimensions of DeepSeek-V4.1-Flash. "mid": about 8 GB, of which a token reads
  // over 3 GB. "tiny": a few megabytes, for tests.
  std::string preset = "tiny";
  // Text of a config.json to start from instead of a preset. Empty: use the preset.
  std::string base_config;
  // Layers by the release's pattern: one or two window-only layers, ratio 2 up to the middle,
  // ratio 1 from there, sources at the release's distances. 3 gives ratios 0, 2, 1. [3, 256].
  std::optional<int> layers;
  // [0, 16]; the engine's own limit.
  std::optional<int> draft_stages;
  // Other keys of text_config and their new JSON values, such as {"hidden_size", "1024"}. Only keys
  // that the configuration already has.
  std::map<std::string, std::string> settings;
};

// The config.json text of a design, accepted by ParseModelConfig. engram_num_embeddings follow from
// the hash primes; engram_compressed_vocab_size is still vocab_size, since only a tokenizer gives
// it; a vision_config is dropped, since no vision tower is made. Errors name the key, the value and
// what is allowed.
Result<std::string> DesignConfig(const CheckpointDesign& design);

// Fits a config.json text to a tokenizer: sets engram_compressed_vocab_size and takes the ids of
// the special tokens (begin, end and padding of text, system turn as draft noise, image) from the
// tokenizer's added_tokens where it has them.
Result<std::string> FitConfigToTokenizer(std::string_view config_json,
                                         std::string_view tokenizer_json,
                                         int64_t engram_compressed_vocab_size);

// Adds unused entries "<unused_ID>" until every id below vocab_size has one. No text encodes to
// them. kInvalidArgument when the tokenizer has an id at or above vocab_size.
Result<std::string> PadTokenizer(std::string_view tokenizer_json, int64_t vocab_size);

}  // namespace deepinfer
