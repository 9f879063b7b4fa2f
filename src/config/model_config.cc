#include "config/model_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "config/layer_roles.h"
#include "config/strict_json.h"

namespace deepinfer {
namespace {

using nlohmann::json;

constexpr std::string_view kArchitecture = "DeepseekV41ForCausalLM";

// Upper bounds far above any real model: products of a few dimensions stay inside int64, and a
// hostile file cannot make the engine list tensors without end.
constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxWidth = int64_t{1} << 20;  // hidden and intermediate sizes
constexpr int64_t kMaxRank = int64_t{1} << 16;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 8192;
constexpr int64_t kMaxLayers = 512;
constexpr int64_t kMaxExperts = 4096;
constexpr int64_t kMaxLayersTimesExperts = int64_t{1} << 18;
constexpr int64_t kMaxPositions = int64_t{1} << 30;
constexpr int64_t kMaxTableRows = int64_t{1} << 40;
constexpr int64_t kMaxHashModulus = int64_t{1} << 31;

// Widths that the quantisers cut into groups of this many values.
constexpr int64_t kGroup = 32;

// Typed access to one JSON object. The first failure is kept in the shared status and every later
// read returns a harmless value, so that a run of reads needs one check at its end.
class ObjectReader {
 public:
  ObjectReader(const json& object, std::string prefix, Status& status)
      : object_(object), prefix_(std::move(prefix)), status_(status) {}

  // Null when absent or JSON null.
  const json* Optional(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  int64_t Int(const char* key, int64_t min, int64_t max) const {
    const json* value = Required(key);
    if (value == nullptr) return min;
    const std::optional<int64_t> number = ToInt(*value);
    if (number && *number >= min && *number <= max) return *number;
    Fail(key, *value, fmt::format("an integer in [{}, {}]", min, max));
    return min;
  }

  // A dimension that must also be a multiple of `step`.
  int64_t Multiple(const char* key, int64_t step, int64_t max) const {
    const int64_t value = Int(key, step, max);
    if (value % step == 0) return value;
    Fail(key, json(value), fmt::format("a multiple of {} in [{}, {}]", step, step, max));
    return step;
  }

  double Float(const char* key, double min, double max) const {
    const json* value = Required(key);
    if (value == nullptr) return min;
    if (value->is_number()) {
      const double number = value->get<double>();
      if (number >= min && number <= max) return number;
    }
    Fail(key, *value, fmt::format("a number in [{}, {}]", min, max));
    return min;
  }

  // Between min_count and max_count integers of [min, max].
  template <typename T>
  std::vector<T> IntList(const char* key, int64_t min_count, int64_t max_count, int64_t min,
                         int64_t max) const {
    const json* value = Required(key);
    if (value == nullptr) return {};
    const auto count = static_cast<int64_t>(value->size());
    if (!value->is_array() || count < min_count || count > max_count) {
      const std::string shown =
          value->is_array() ? fmt::format("a list of {}", count) : ShownJson(*value);
      FailShown(key, shown, fmt::format("a list of {} integers", Count(min_count, max_count)));
      return {};
    }
    std::vector<T> list;
    for (const json& element : *value) {
      const std::optional<int64_t> number = ToInt(element);
      if (!number || *number < min || *number > max) {
        FailShown(fmt::format("{}[{}]", key, list.size()), ShownJson(element),
                  fmt::format("an integer in [{}, {}]", min, max));
        return {};
      }
      list.push_back(static_cast<T>(*number));
    }
    return list;
  }

  // Layer numbers: as IntList, and strictly ascending.
  std::vector<int> LayerList(const char* key, int64_t min_count, int num_layers) const {
    std::vector<int> list = IntList<int>(key, min_count, num_layers, 0, num_layers - 1);
    const auto bad = std::adjacent_find(list.begin(), list.end(), std::greater_equal<>());
    if (bad == list.end()) return list;
    FailShown(key, fmt::format("[{}]", fmt::join(list, ", ")), "a strictly ascending list");
    return {};
  }

  // The engine runs one value only; anything else is kUnsupported.
  void Only(const char* key, const json& expected) const {
    const json* value = Required(key);
    if (value != nullptr) Expect(key, *value, expected);
  }
  void OnlyIfPresent(const char* key, const json& expected) const {
    if (const json* value = Optional(key)) Expect(key, *value, expected);
  }

  ObjectReader Object(const char* key) const {
    static const json kEmpty = json::object();
    const json* value = Required(key);
    if (value != nullptr && !value->is_object()) Fail(key, *value, "an object");
    const bool usable = value != nullptr && value->is_object();
    return ObjectReader(usable ? *value : kEmpty, prefix_ + key + ".", status_);
  }

  template <typename Key>
  void Fail(const Key& key, const json& value, const std::string& allowed) const {
    FailShown(key, ShownJson(value), allowed);
  }

  bool ok() const { return status_.has_value(); }

 private:
  static std::optional<int64_t> ToInt(const json& value) {
    if (!value.is_number_integer()) return std::nullopt;
    if (value.is_number_unsigned() &&
        value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
      return std::nullopt;
    }
    return value.get<int64_t>();
  }

  static std::string Count(int64_t min, int64_t max) {
    return min == max ? fmt::format("{}", min) : fmt::format("{} to {}", min, max);
  }

  const json* Required(const char* key) const {
    if (!ok()) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    status_ = MakeError(ErrorCode::kNotFound, "missing key {}{}", prefix_, key);
    return nullptr;
  }

  void Expect(const char* key, const json& value, const json& expected) const {
    if (!ok() || value == expected) return;
    status_ = MakeError(ErrorCode::kUnsupported, "{}{} is {}; only {} is supported", prefix_, key,
                        ShownJson(value), ShownJson(expected));
  }

  template <typename Key>
  void FailShown(const Key& key, const std::string& shown, const std::string& allowed) const {
    if (!ok()) return;
    status_ = MakeError(ErrorCode::kInvalidArgument, "{}{} is {}; it must be {}", prefix_, key,
                        shown, allowed);
  }

  const json& object_;
  std::string prefix_;
  Status& status_;
};

void CheckArchitecture(const ObjectReader& root) {
  root.Only("architectures", json::array({kArchitecture}));
  root.Only("model_type", "deepseek_v41");
  root.OnlyIfPresent("dtype", "bfloat16");
  root.OnlyIfPresent("torch_dtype", "bfloat16");
  root.OnlyIfPresent("tie_word_embeddings", false);
  const ObjectReader quantization = root.Object("quantization_config");
  quantization.Only("quant_method", "fp8");
  quantization.Only("activation_scheme", "dynamic");
  quantization.Only("weight_block_size", json::array({kGroup, kGroup}));
  quantization.Only("scale_fmt", "ue8m0");
  quantization.Only("expert_dtype", "fp4");
}

// Choices that other DeepSeek models make differently.
void CheckVariant(const ObjectReader& text) {
  text.Only("model_type", "deepseek_v41_text");
  text.Only("num_key_value_heads", 1);
  text.Only("hidden_act", "silu");
  text.Only("n_shared_experts", 1);
  text.Only("scoring_func", "sqrtsoftplus");
  text.Only("topk_method", "noaux_tc");
  text.Only("norm_topk_prob", true);
  text.OnlyIfPresent("attention_bias", false);
  text.OnlyIfPresent("tie_word_embeddings", false);
  text.OnlyIfPresent("gate_temp", 1.0);
  text.OnlyIfPresent("num_hash_layers", 0);
}

void ReadAttention(const ObjectReader& text, ModelConfig& config) {
  config.num_heads = static_cast<int>(text.Int("num_attention_heads", 1, kMaxHeads));
  config.head_dim = text.Multiple("head_dim", kGroup, kMaxHeadDim);
  config.rope_dim = text.Multiple("qk_rope_head_dim", 2, config.head_dim);
  config.q_lora_rank = text.Multiple("q_lora_rank", kGroup, kMaxRank);
  config.o_lora_rank = text.Int("o_lora_rank", 1, kMaxRank);
  config.o_groups = static_cast<int>(text.Int("o_groups", 1, config.num_heads));
  if (config.num_heads % config.o_groups != 0) {
    text.Fail("o_groups", json(config.o_groups),
              fmt::format("a divisor of num_attention_heads = {}", config.num_heads));
  }
  if (config.o_groups * config.o_lora_rank % kGroup != 0) {
    text.Fail("o_lora_rank", json(config.o_lora_rank),
              fmt::format("such that o_groups * o_lora_rank = {} * {} is a multiple of {}",
                          config.o_groups, config.o_lora_rank, kGroup));
  }
  config.sliding_window = text.Int("sliding_window", 1, int64_t{1} << 20);
  config.max_position_embeddings = text.Int("max_position_embeddings", 1, kMaxPositions);
  config.rope_theta = text.Float("rope_theta", 2, 1e12);
  config.compress_rope_theta = text.Float("compress_rope_theta", 2, 1e12);
  const ObjectReader rope = text.Object("rope_scaling");
  rope.Only("rope_type", "yarn");
  config.rope_scaling.factor = rope.Float("factor", 1, 1e6);
  config.rope_scaling.beta_fast = rope.Float("beta_fast", 1e-3, 1e6);
  config.rope_scaling.beta_slow = rope.Float("beta_slow", 1e-3, config.rope_scaling.beta_fast);
  config.rope_scaling.original_max_position_embeddings =
      rope.Int("original_max_position_embeddings", 1, kMaxPositions);
}

void ReadCompression(const ObjectReader& text, ModelConfig& config) {
  const int layers = config.num_layers;
  const int64_t entries = layers + config.num_draft_stages;
  config.compress_ratios = text.IntList<int>("compress_ratios", entries, entries, 0, 2);
  for (int64_t i = layers; i < static_cast<int64_t>(config.compress_ratios.size()); ++i) {
    if (config.compress_ratios[i] == 0) continue;
    text.Fail(fmt::format("compress_ratios[{}]", i), json(config.compress_ratios[i]),
              "0, since draft stages have no compressed KV");
  }
  config.kv_source_layers = text.LayerList("kv_source_layer_ids", 1, layers);
  config.index_source_layers = text.LayerList("index_source_layer_ids", 1, layers);
  config.index_heads = static_cast<int>(text.Int("index_n_heads", 1, kMaxHeads));
  config.index_head_dim = text.Multiple("index_head_dim", kGroup, kMaxHeadDim);
  if (config.rope_dim > config.index_head_dim) {
    text.Fail("qk_rope_head_dim", json(config.rope_dim),
              fmt::format("at most index_head_dim = {}", config.index_head_dim));
  }
  config.index_topk = text.Int("index_topk", 1, int64_t{1} << 20);
  // -1: no layer restricts the selection.
  config.candidate_source_layer =
      static_cast<int>(text.Int("candidate_source_layer_id", -1, layers - 1));
  if (config.candidate_source_layer < 0) return;
  config.candidate_topk_blocks = text.Int("candidate_topk_blocks", 1, int64_t{1} << 24);
  config.candidate_block_size = text.Int("candidate_block_size", 1, int64_t{1} << 16);
}

void ReadMoe(const ObjectReader& text, ModelConfig& config) {
  const int64_t most = std::min(kMaxExperts, kMaxLayersTimesExperts / config.num_layers);
  config.num_experts = static_cast<int>(text.Int("n_routed_experts", 1, most));
  config.experts_per_token =
      static_cast<int>(text.Int("num_experts_per_tok", 1, config.num_experts));
  config.moe_intermediate_size = text.Multiple("moe_intermediate_size", kGroup, kMaxWidth);
  config.routed_scaling_factor = static_cast<float>(text.Float("routed_scaling_factor", 1e-6, 1e6));
  config.swiglu_limit = static_cast<float>(text.Float("swiglu_limit", 1e-6, 1e6));
}

void ReadHyperConnections(const ObjectReader& text, ModelConfig& config) {
  config.hc_mult = static_cast<int>(text.Int("hc_mult", 1, 8));
  config.hc_sinkhorn_iters = static_cast<int>(text.Int("hc_sinkhorn_iters", 1, 1000));
  config.hc_eps = static_cast<float>(text.Float("hc_eps", 0, 1));
}

void ReadEngram(const ObjectReader& text, ModelConfig& config) {
  config.engram_layers = text.LayerList("engram_layer_ids", 0, config.num_layers);
  if (config.engram_layers.empty()) return;
  const auto tables = static_cast<int64_t>(config.engram_layers.size());
  config.engram_num_embeddings =
      text.IntList<int64_t>("engram_num_embeddings", tables, tables, 1, kMaxTableRows);
  config.engram_max_ngram = static_cast<int>(text.Int("engram_max_ngram_size", 2, 16));
  config.engram_vocab_size = text.Int("engram_vocab_size", 2, kMaxHashModulus);
  config.engram_heads = static_cast<int>(text.Int("engram_n_heads", 1, 256));
  config.engram_head_dim = text.Multiple("engram_head_dim", kGroup, kMaxHeadDim);
  config.engram_pad_token =
      static_cast<int32_t>(text.Int("engram_pad_token_id", 0, config.vocab_size - 1));
  config.engram_compressed_vocab_size =
      text.Int("engram_compressed_vocab_size", 1, config.vocab_size);
}

void ReadDraft(const ObjectReader& text, ModelConfig& config) {
  if (config.num_draft_stages == 0) return;
  config.draft_block_size = static_cast<int>(text.Int("dspark_block_size", 1, 256));
  config.draft_noise_token =
      static_cast<int32_t>(text.Int("dspark_noise_token_id", 0, config.vocab_size - 1));
  config.draft_target_layers = text.LayerList("dspark_target_layer_ids", 1, config.num_layers);
  config.draft_markov_rank = text.Int("dspark_markov_rank", 1, kMaxRank);
  config.draft_num_experts = static_cast<int>(text.Int("dspark_n_routed_experts", 1, kMaxExperts));
  config.draft_experts_per_token =
      static_cast<int>(text.Int("dspark_num_experts_per_tok", 1, config.draft_num_experts));
}

// A token id of the root object or of text_config; both may state it if they agree.
int32_t ReadTokenId(const ObjectReader& root, const ObjectReader& text, const char* key,
                    int64_t vocab_size) {
  const ObjectReader& first = root.Optional(key) != nullptr ? root : text;
  const int64_t id = first.Int(key, 0, vocab_size - 1);
  if (&first == &root && text.Optional(key) != nullptr && text.Int(key, 0, vocab_size - 1) != id) {
    text.Fail(key, *text.Optional(key), fmt::format("{}, as at the top level", id));
  }
  return static_cast<int32_t>(id);
}

void ReadTokensAndVision(const ObjectReader& root, const ObjectReader& text, ModelConfig& config) {
  config.bos_token = ReadTokenId(root, text, "bos_token_id", config.vocab_size);
  config.eos_token = ReadTokenId(root, text, "eos_token_id", config.vocab_size);
  config.pad_token = ReadTokenId(root, text, "pad_token_id", config.vocab_size);
  const json* vision = root.Optional("vision_config");
  if (vision != nullptr && !vision->is_object()) {
    root.Fail("vision_config", *vision, "an object");
  }
  config.has_vision = vision != nullptr;
  if (config.has_vision || root.Optional("image_token_id") != nullptr) {
    config.image_token = static_cast<int32_t>(root.Int("image_token_id", 0, config.vocab_size - 1));
  }
}

}  // namespace

Result<ModelConfig> ParseModelConfig(std::string_view text_of_file) {
  DI_ASSIGN_OR_RETURN(const json document, ParseStrictJson(text_of_file, "config.json"));
  if (!document.is_object()) {
    return MakeError(ErrorCode::kInvalidArgument, "config.json is {}; it must be an object",
                     ShownJson(document));
  }
  Status status;
  const ObjectReader root(document, "", status);
  CheckArchitecture(root);
  const ObjectReader text = root.Object("text_config");
  CheckVariant(text);

  ModelConfig config;
  config.vocab_size = text.Int("vocab_size", 2, kMaxVocab);
  config.hidden_size = text.Multiple("hidden_size", kGroup, kMaxWidth);
  config.num_layers = static_cast<int>(text.Int("num_hidden_layers", 1, kMaxLayers));
  config.num_draft_stages = static_cast<int>(text.Int("num_nextn_predict_layers", 0, 16));
  config.rms_norm_eps = static_cast<float>(text.Float("rms_norm_eps", 1e-30, 1));
  ReadAttention(text, config);
  ReadCompression(text, config);
  ReadMoe(text, config);
  ReadHyperConnections(text, config);
  ReadEngram(text, config);
  ReadDraft(text, config);
  ReadTokensAndVision(root, text, config);
  if (!status) return Forward(std::move(status).error(), "config.json");
  status = AssignLayerRoles(config);
  if (!status) return Forward(std::move(status).error(), "config.json");
  return config;
}

}  // namespace deepinfer
