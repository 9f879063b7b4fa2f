#include "loader/checkpoint_design.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/engram_primes.h"
#include "config/model_config.h"
#include "loader/config_presets.h"

namespace deepinfer {
namespace {

// Keeps the order of keys, but looks them up one by one: not for vocabularies.
using Json = nlohmann::ordered_json;
using SortedJson = nlohmann::json;

constexpr int kMinLayers = 3;
constexpr int kMaxLayers = 256;
constexpr int kMaxDraftStages = 16;
constexpr int64_t kMaxVocab = int64_t{1} << 24;

template <typename AnyJson>
Result<AnyJson> ParseObject(std::string_view text, std::string_view what) {
  AnyJson json = AnyJson::parse(text, nullptr, false);
  if (!json.is_object()) {
    return MakeError(ErrorCode::kInvalidArgument, "{} is not a JSON object", what);
  }
  return json;
}

Result<Json> StartingConfig(const CheckpointDesign& design) {
  Json config;
  if (!design.base_config.empty()) {
    DI_RETURN_IF_ERROR(ParseModelConfig(design.base_config));
    DI_ASSIGN_OR_RETURN(config, ParseObject<Json>(design.base_config, "config.json"));
  } else {
    DI_ASSIGN_OR_RETURN(const std::string preset, PresetConfig(design.preset));
    DI_ASSIGN_OR_RETURN(config, ParseObject<Json>(preset, "preset"));
  }
  config.erase("vision_config");
  return config;
}

// The release's arrangement of n layers. With 40 it is the release's own.
void ArrangeLayers(Json& text, int n) {
  constexpr int kKvDistance = 6;     // between KV sources of the ratio-2 part
  constexpr int kIndexDistance = 4;  // between index sources of the ratio-1 part
  constexpr int kSecondTable = 14;   // layer of the release's second Engram table
  constexpr int kTaps = 3;
  const int window_only = n >= 6 ? 2 : 1;
  const int decoder = std::max(n / 2, window_only + 1);
  std::vector<int> ratios, kv_sources, index_sources, taps;
  for (int layer = 0; layer < n; ++layer) {
    ratios.push_back(layer < window_only ? 0 : layer < decoder ? 2 : 1);
  }
  for (int layer = window_only; layer < decoder; layer += kKvDistance) kv_sources.push_back(layer);
  kv_sources.push_back(decoder);
  index_sources = kv_sources;
  for (int layer = decoder + kIndexDistance; layer < n; layer += kIndexDistance) {
    index_sources.push_back(layer);
  }
  for (int layer = n - std::min(kTaps, n); layer < n; ++layer) taps.push_back(layer);
  text["num_hidden_layers"] = n;
  text["compress_ratios"] = ratios;  // SetDraftStages appends the stages
  text["kv_source_layer_ids"] = kv_sources;
  text["index_source_layer_ids"] = index_sources;
  text["candidate_source_layer_id"] = decoder;
  if (text.contains("engram_layer_ids") && !text["engram_layer_ids"].empty()) {
    text["engram_layer_ids"] = n > kSecondTable ? Json{1, kSecondTable} : Json{1};
  }
  text["dspark_target_layer_ids"] = taps;
}

void SetDraftStages(Json& text, int stages) {
  Json& ratios = text["compress_ratios"];
  ratios.erase(ratios.begin() + text["num_hidden_layers"].get<int>(), ratios.end());
  for (int stage = 0; stage < stages; ++stage) ratios.push_back(0);
  text["num_nextn_predict_layers"] = stages;
}

Status CheckRange(std::string_view what, int value, int min, int max) {
  if (value >= min && value <= max) return {};
  return MakeError(ErrorCode::kInvalidArgument, "{} is {}, allowed are {} to {}", what, value, min,
                   max);
}

Status ApplySettings(Json& text, const std::map<std::string, std::string>& settings) {
  for (const auto& [key, value] : settings) {
    if (key == "num_hidden_layers" || key == "num_nextn_predict_layers") {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{} cannot be set alone: give the number of layers or draft stages instead",
                       key);
    }
    if (!text.contains(key)) {
      return MakeError(ErrorCode::kInvalidArgument, "text_config has no key \"{}\"", key);
    }
    const Json parsed = Json::parse(value, nullptr, false);
    if (parsed.is_discarded()) {
      return MakeError(ErrorCode::kInvalidArgument, "the value of {} is not JSON: {}", key, value);
    }
    text[key] = parsed;
  }
  return {};
}

// Makes what follows from other keys follow from them.
Status DeriveEngram(Json& text) {
  const auto layers = text.find("engram_layer_ids");
  if (layers == text.end() || !layers->is_array() || layers->empty()) return {};
  for (const char* key : {"engram_max_ngram_size", "engram_n_heads", "engram_vocab_size"}) {
    if (!text.contains(key) || !text[key].is_number_integer()) {
      return MakeError(ErrorCode::kInvalidArgument, "text_config.{} is not an integer", key);
    }
  }
  const int64_t ngrams = text["engram_max_ngram_size"].get<int64_t>() - 1;
  const int64_t heads = text["engram_n_heads"].get<int64_t>();
  for (const int64_t factor : {ngrams, heads}) {
    if (factor < 1 || factor > 256) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "text_config.engram_max_ngram_size is {} and engram_n_heads {}; allowed are "
                       "2 to 16 and 1 to 256",
                       ngrams + 1, heads);
    }
  }
  DI_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                      EngramTableRows(static_cast<int64_t>(layers->size()), ngrams * heads,
                                      text["engram_vocab_size"].get<int64_t>()));
  text["engram_num_embeddings"] = rows;
  return {};
}

Result<std::string> Checked(const Json& config) {
  const std::string text = config.dump(2) + "\n";
  DI_RETURN_IF_ERROR(ParseModelConfig(text));
  return text;
}

// Ids by content of the tokenizer's added tokens.
std::map<std::string, int64_t> AddedTokens(const SortedJson& tokenizer) {
  std::map<std::string, int64_t> ids;
  const auto added = tokenizer.find("added_tokens");
  if (added == tokenizer.end() || !added->is_array()) return ids;
  for (const SortedJson& token : *added) {
    if (!token.is_object() || !token.contains("content") || !token["content"].is_string() ||
        !token.contains("id") || !token["id"].is_number_unsigned()) {
      continue;
    }
    ids[token["content"].get<std::string>()] = token["id"].get<int64_t>();
  }
  return ids;
}

}  // namespace

Result<std::string> DesignConfig(const CheckpointDesign& design) {
  if (design.layers) {
    DI_RETURN_IF_ERROR(CheckRange("the number of layers", *design.layers, kMinLayers, kMaxLayers));
  }
  if (design.draft_stages) {
    DI_RETURN_IF_ERROR(
        CheckRange("the number of draft stages", *design.draft_stages, 0, kMaxDraftStages));
  }
  DI_ASSIGN_OR_RETURN(Json config, StartingConfig(design));
  Json& text = config["text_config"];
  const int stages = design.draft_stages.value_or(text["num_nextn_predict_layers"].get<int>());
  if (design.layers) ArrangeLayers(text, *design.layers);
  SetDraftStages(text, stages);
  DI_RETURN_IF_ERROR(ApplySettings(text, design.settings));
  DI_RETURN_IF_ERROR(DeriveEngram(text));
  if (text.contains("vocab_size")) text["engram_compressed_vocab_size"] = text["vocab_size"];
  return Checked(config);
}

Result<std::string> FitConfigToTokenizer(std::string_view config_json,
                                         std::string_view tokenizer_json,
                                         int64_t engram_compressed_vocab_size) {
  DI_ASSIGN_OR_RETURN(Json config, ParseObject<Json>(config_json, "config.json"));
  DI_ASSIGN_OR_RETURN(const SortedJson tokenizer,
                      ParseObject<SortedJson>(tokenizer_json, "tokenizer.json"));
  if (!config.contains("text_config") || !config["text_config"].is_object()) {
    return MakeError(ErrorCode::kInvalidArgument, "config.json has no text_config");
  }
  Json& text = config["text_config"];
  const std::map<std::string, int64_t> added = AddedTokens(tokenizer);
  const auto take = [&](const char* token, Json& object, const char* key) {
    const auto found = added.find(token);
    if (found != added.end()) object[key] = found->second;
  };
  take("<｜begin▁of▁sentence｜>", config, "bos_token_id");
  take("<｜end▁of▁sentence｜>", config, "eos_token_id");
  take("<｜▁pad▁｜>", config, "pad_token_id");
  take("<｜deepseek_image｜>", config, "image_token_id");
  take("<｜▁pad▁｜>", text, "engram_pad_token_id");
  take("<｜System｜>", text, "dspark_noise_token_id");
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    if (text.contains(key)) text[key] = config[key];
  }
  text["engram_compressed_vocab_size"] = engram_compressed_vocab_size;
  return Checked(config);
}

Result<std::string> PadTokenizer(std::string_view tokenizer_json, int64_t vocab_size) {
  if (vocab_size < 1 || vocab_size > kMaxVocab) {
    return MakeError(ErrorCode::kInvalidArgument, "vocab_size is {}, allowed are 1 to {}",
                     vocab_size, kMaxVocab);
  }
  DI_ASSIGN_OR_RETURN(SortedJson tokenizer,
                      ParseObject<SortedJson>(tokenizer_json, "tokenizer.json"));
  if (!tokenizer.contains("model") || !tokenizer["model"].is_object() ||
      !tokenizer["model"].contains("vocab") || !tokenizer["model"]["vocab"].is_object()) {
    return MakeError(ErrorCode::kInvalidArgument, "tokenizer.json has no object model.vocab");
  }
  SortedJson& vocab = tokenizer["model"]["vocab"];
  std::vector<bool> used(static_cast<size_t>(vocab_size));
  const auto use = [&](const std::string& token, int64_t id) -> Status {
    if (id < 0 || id >= vocab_size) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "the tokenizer has token \"{}\" with id {}; vocab_size is only {}", token,
                       id, vocab_size);
    }
    used[static_cast<size_t>(id)] = true;
    return {};
  };
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_unsigned()) {
      return MakeError(ErrorCode::kInvalidArgument, "tokenizer.json: the id of \"{}\" is no number",
                       token);
    }
    DI_RETURN_IF_ERROR(use(token, id.get<int64_t>()));
  }
  for (const auto& [token, id] : AddedTokens(tokenizer)) DI_RETURN_IF_ERROR(use(token, id));
  for (int64_t id = 0; id < vocab_size; ++id) {
    if (!used[static_cast<size_t>(id)]) vocab[fmt::format("<unused_{}>", id)] = id;
  }
  return tokenizer.dump(1) + "\n";
}

}  // namespace deepinfer
