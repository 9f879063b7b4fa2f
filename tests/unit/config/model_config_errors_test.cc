// Bad configurations: each error names the key, its value and what is allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/config/config_files.h"

namespace deepinfer {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// The error of the release's configuration after `edit`.
Error ErrorAfter(const std::function<void(json&)>& edit) {
  json document = ReleaseJson();
  edit(document);
  auto config = Parse(document);
  return config ? Error{ErrorCode::kInternal, "accepted"} : config.error();
}

// The error after one key of text_config got another value.
Error ErrorWith(const std::string& key, json value) {
  return ErrorAfter([&](json& d) { d["text_config"][key] = std::move(value); });
}

// ---- every key ----

// Keys of text_config that the model needs; the release's file has exactly these and four more.
const std::vector<std::string>& NeededTextKeys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> list;
    const json release = ReleaseJson();
    for (const auto& [key, value] : release["text_config"].items()) {
      const bool needless = key == "attention_dropout" || key == "initializer_range" ||
                            key == "use_cache" || key == "tie_word_embeddings" ||
                            key == "attention_bias";
      if (!needless) list.push_back(key);
    }
    return list;
  }();
  return keys;
}

TEST(ModelConfig, EveryMissingKeyIsNamed) {
  for (const std::string& key : NeededTextKeys()) {
    const Error error = ErrorAfter([&](json& d) { d["text_config"].erase(key); });
    EXPECT_EQ(error.code, ErrorCode::kNotFound) << key;
    EXPECT_EQ(error.message, "config.json: missing key text_config." + key);
  }
  for (const char* key :
       {"architectures", "model_type", "text_config", "quantization_config", "image_token_id"}) {
    const Error error = ErrorAfter([&](json& d) { d.erase(key); });
    EXPECT_EQ(error.message, std::string("config.json: missing key ") + key);
  }
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const Error error = ErrorAfter([&](json& d) { d.erase(key); });
    EXPECT_EQ(error.message, std::string("config.json: missing key text_config.") + key);
  }
  for (const char* key :
       {"quant_method", "activation_scheme", "weight_block_size", "scale_fmt", "expert_dtype"}) {
    const Error error = ErrorAfter([&](json& d) { d["quantization_config"].erase(key); });
    EXPECT_EQ(error.message, std::string("config.json: missing key quantization_config.") + key);
  }
  for (const char* key :
       {"rope_type", "factor", "beta_fast", "beta_slow", "original_max_position_embeddings"}) {
    const Error error = ErrorAfter([&](json& d) { d["text_config"]["rope_scaling"].erase(key); });
    EXPECT_EQ(error.message,
              std::string("config.json: missing key text_config.rope_scaling.") + key);
  }
}

TEST(ModelConfig, EveryWrongTypeIsNamedAndNeverAnException) {
  const std::vector<json> wrong = {nullptr, "text", json::array({"x"}), json::object(),
                                   -7,      1e300,  uint64_t{1} << 63,  ~uint64_t{0}};
  for (const std::string& key : NeededTextKeys()) {
    for (const json& value : wrong) {
      const Error error = ErrorWith(key, value);
      // A list's elements are named with their index, an object's members by their own keys.
      EXPECT_THAT(error.message, HasSubstr("text_config." + key));
      EXPECT_THAT(error.message, AnyOf(HasSubstr("; it must be "), HasSubstr(" is supported"),
                                       HasSubstr("missing key")));
    }
  }
  for (const char* key : {"architectures", "model_type", "text_config", "quantization_config",
                          "bos_token_id", "dtype", "vision_config", "image_token_id"}) {
    for (const json& value : {json("text"), json(-7), json(1e300), json(~uint64_t{0})}) {
      const Error error = ErrorAfter([&](json& d) { d[key] = value; });
      EXPECT_THAT(error.message, HasSubstr(std::string(key) + " is ")) << value;
    }
  }
}

TEST(ModelConfig, IntegersWrittenAsFractionsAreRefused) {
  EXPECT_EQ(ErrorWith("hidden_size", 5120.0).message,
            "config.json: text_config.hidden_size is 5120.0; it must be an integer in "
            "[32, 1048576]");
}

TEST(ModelConfig, ErrorsShowTheValueAndTheAllowedRange) {
  EXPECT_EQ(ErrorWith("hc_mult", 9).message,
            "config.json: text_config.hc_mult is 9; it must be an integer in [1, 8]");
  EXPECT_EQ(ErrorWith("num_experts_per_tok", 385).message,
            "config.json: text_config.num_experts_per_tok is 385; it must be an integer in "
            "[1, 384]");
  EXPECT_EQ(ErrorWith("head_dim", 500).message,
            "config.json: text_config.head_dim is 500; it must be a multiple of 32 in [32, 8192]");
  EXPECT_EQ(ErrorAfter([](json& d) { d["eos_token_id"] = 129280; }).message,
            "config.json: eos_token_id is 129280; it must be an integer in [0, 129279]");
}

// ---- other models ----

TEST(ModelConfig, OtherModelsAreUnsupportedAndNamed) {
  const Error llama = ErrorAfter([](json& d) { d["architectures"] = {"LlamaForCausalLM"}; });
  EXPECT_EQ(llama.code, ErrorCode::kUnsupported);
  EXPECT_THAT(llama.message,
              AllOf(HasSubstr("LlamaForCausalLM"), HasSubstr("DeepseekV41ForCausalLM")));
  const auto expect_unsupported = [](const Error& error, const std::string& what) {
    EXPECT_EQ(error.code, ErrorCode::kUnsupported) << what;
    EXPECT_THAT(error.message, HasSubstr(what));
  };
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, json>>{{"model_type", "deepseek_v4"},
                                                 {"hidden_act", "gelu"},
                                                 {"scoring_func", "sigmoid"},
                                                 {"topk_method", "greedy"},
                                                 {"norm_topk_prob", false},
                                                 {"n_shared_experts", 2},
                                                 {"num_key_value_heads", 8},
                                                 {"attention_bias", true},
                                                 {"tie_word_embeddings", true},
                                                 {"num_hash_layers", 3}}) {
    expect_unsupported(ErrorWith(key, value), "text_config." + key + " is " + value.dump());
  }
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, json>>{{"quant_method", "awq"},
                                                 {"activation_scheme", "static"},
                                                 {"weight_block_size", {128, 128}},
                                                 {"scale_fmt", "float"},
                                                 {"expert_dtype", "fp8"}}) {
    expect_unsupported(ErrorAfter([&](json& d) { d["quantization_config"][key] = value; }),
                       "quantization_config." + key + " is " + value.dump());
  }
  expect_unsupported(
      ErrorAfter([](json& d) { d["text_config"]["rope_scaling"]["rope_type"] = "linear"; }),
      "rope_type is \"linear\"");
  expect_unsupported(ErrorAfter([](json& d) { d["model_type"] = "llama"; }),
                     "model_type is \"llama\"");
  expect_unsupported(ErrorAfter([](json& d) { d["dtype"] = "float16"; }), "dtype is \"float16\"");
}

// ---- values that only make sense together ----

TEST(ModelConfig, DimensionsMustFitTheQuantisersGroups) {
  for (const char* key : {"hidden_size", "q_lora_rank", "moe_intermediate_size", "engram_head_dim",
                          "index_head_dim", "head_dim"}) {
    EXPECT_THAT(ErrorWith(key, 80).message, HasSubstr("it must be a multiple of 32")) << key;
  }
  EXPECT_THAT(ErrorWith("o_lora_rank", 3).message,
              HasSubstr("such that o_groups * o_lora_rank = 8 * 3 is a multiple of 32"));
  EXPECT_THAT(ErrorWith("o_groups", 7).message, HasSubstr("a divisor of num_attention_heads = 64"));
  EXPECT_THAT(ErrorWith("qk_rope_head_dim", 63).message, HasSubstr("a multiple of 2"));
  EXPECT_THAT(ErrorWith("qk_rope_head_dim", 514).message, HasSubstr("[2, 512]"));
  EXPECT_THAT(ErrorWith("qk_rope_head_dim", 130).message,
              HasSubstr("at most index_head_dim = 128"));
}

TEST(ModelConfig, OutOfRangeValuesAreRefused) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, json>>{{"vocab_size", (1 << 24) + 1},
                                                 {"vocab_size", 1},
                                                 {"num_hidden_layers", 0},
                                                 {"num_hidden_layers", 513},
                                                 {"hc_mult", 0},
                                                 {"hc_sinkhorn_iters", 0},
                                                 {"rms_norm_eps", 0},
                                                 {"rms_norm_eps", -1e-6},
                                                 {"swiglu_limit", 0},
                                                 {"routed_scaling_factor", -1},
                                                 {"rope_theta", 1},
                                                 {"sliding_window", 0},
                                                 {"index_topk", 0},
                                                 {"n_routed_experts", 0},
                                                 {"n_routed_experts", 5000},
                                                 {"max_position_embeddings", int64_t{1} << 40},
                                                 {"dspark_block_size", 0},
                                                 {"dspark_noise_token_id", 129280},
                                                 {"engram_pad_token_id", 129280},
                                                 {"engram_compressed_vocab_size", 129281},
                                                 {"engram_max_ngram_size", 1},
                                                 {"engram_vocab_size", 0},
                                                 {"candidate_block_size", 0},
                                                 {"candidate_topk_blocks", 0},
                                                 {"num_nextn_predict_layers", 17}}) {
    const Error error = ErrorWith(key, value);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << key << " " << value;
    EXPECT_THAT(error.message,
                HasSubstr("text_config." + key + " is " + value.dump() + "; it must be "));
  }
  EXPECT_THAT(
      ErrorAfter([](json& d) { d["text_config"]["rope_scaling"]["beta_slow"] = 64; }).message,
      HasSubstr("beta_slow is 64; it must be a number in [0.001, 32]"));
}

TEST(ModelConfig, LayersTimesExpertsIsBounded) {
  // 512 layers leave room for 512 experts: the tensor list of a hostile file stays small.
  EXPECT_THAT(ErrorAfter([](json& d) {
                d["text_config"]["num_hidden_layers"] = 512;
                d["text_config"]["compress_ratios"] = std::vector<int>(515, 0);
                d["text_config"]["n_routed_experts"] = 4096;
              }).message,
              HasSubstr("n_routed_experts is 4096; it must be an integer in [1, 512]"));
}

TEST(ModelConfig, ListsMustHaveTheirLengthAndOrder) {
  EXPECT_THAT(ErrorWith("compress_ratios", json::array({0, 2, 1})).message,
              HasSubstr("compress_ratios is a list of 3; it must be a list of 43 integers"));
  EXPECT_THAT(ErrorWith("compress_ratios", std::vector<int>(43, 4)).message,
              HasSubstr("compress_ratios[0] is 4; it must be an integer in [0, 2]"));
  EXPECT_THAT(ErrorAfter([](json& d) { d["text_config"]["compress_ratios"][42] = 1; }).message,
              HasSubstr("compress_ratios[42] is 1; it must be 0, since draft stages"));
  EXPECT_THAT(ErrorWith("engram_num_embeddings", json::array({5})).message,
              HasSubstr("a list of 2 integers"));
  EXPECT_THAT(ErrorWith("kv_source_layer_ids", json::array()).message,
              HasSubstr("a list of 1 to 40 integers"));
  for (const char* key : {"kv_source_layer_ids", "index_source_layer_ids", "engram_layer_ids",
                          "dspark_target_layer_ids"}) {
    EXPECT_THAT(ErrorWith(key, json::array({3, 2})).message,
                HasSubstr("is [3, 2]; it must be a strictly ascending list"));
    EXPECT_THAT(ErrorWith(key, json::array({2, 2})).message, HasSubstr("strictly ascending"));
    EXPECT_THAT(ErrorWith(key, json::array({2, 40})).message,
                HasSubstr("[1] is 40; it must be an integer in [0, 39]"));
    EXPECT_THAT(ErrorWith(key, json::array({-1})).message, HasSubstr("[0] is -1"));
    EXPECT_THAT(ErrorWith(key, json::array({1.5})).message, HasSubstr("[0] is 1.5"));
  }
}

TEST(ModelConfig, SourcesMustServeEveryLayer) {
  const auto sources = [](std::vector<int> kv, std::vector<int> index, int candidate) {
    return ErrorAfter([&](json& d) {
      d["text_config"]["kv_source_layer_ids"] = kv;
      d["text_config"]["index_source_layer_ids"] = index;
      d["text_config"]["candidate_source_layer_id"] = candidate;
    });
  };
  const std::vector<int> index = {2, 8, 14, 20, 24, 28, 32, 36};
  EXPECT_THAT(sources({8, 14, 20}, index, 20).message,
              HasSubstr("layer 2 has compress_ratio 2, but text_config.kv_source_layer_ids names "
                        "no layer at or before it"));
  EXPECT_THAT(sources({2, 8, 14}, index, 20).message,
              HasSubstr("layer 20 has compress_ratio 1, but its source, layer 14, has 2"));
  EXPECT_THAT(
      sources({2, 8, 14, 20}, {2, 14, 20}, 20).message,
      HasSubstr("kv_source_layer_ids names layer 8, which index_source_layer_ids does not"));
  EXPECT_THAT(sources({0, 2, 20}, {0, 2, 20}, 20).message,
              HasSubstr("index_source_layer_ids names layer 0, whose compress_ratio is 0"));
  EXPECT_THAT(sources({2, 20}, {2, 20}, 21).message,
              HasSubstr("candidate_source_layer_id is 21; it must be one of"));
  EXPECT_THAT(sources({2, 20}, {2, 20}, 2).message,
              HasSubstr("candidate_source_layer_id is 2, before the last KV source 20"));
  EXPECT_EQ(sources({2, 20}, {2, 20}, -1).message, "accepted");
  EXPECT_EQ(sources({2, 8, 14, 20}, index, 24).message, "accepted");
}

TEST(ModelConfig, TokenIdsThatDisagreeAreRefused) {
  json document = NanoJson();
  document["text_config"]["eos_token_id"] = 5;
  auto config = Parse(document);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message,
              HasSubstr("text_config.eos_token_id is 5; it must be 1, as at the top level"));
}

// ---- hostile files ----

TEST(ModelConfig, HostileTextIsACleanError) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("{}"),
        std::string("\"config\""), std::string(1'000'000, '['), std::string("{\"a\":1,\"a\":2}"),
        std::string("{\"\xff\": 1}"), std::string("{\"vocab_size\": 1e999}"), std::string(64, '\0'),
        std::string("{\"architectures\": \"DeepseekV41ForCausalLM\"}")}) {
    EXPECT_FALSE(ParseModelConfig(text)) << text.substr(0, 40);
  }
}

TEST(ModelConfig, EveryTruncationIsAnError) {
  const std::string text = NanoJson().dump();
  for (size_t length = 0; length < text.size(); ++length) {
    ASSERT_FALSE(ParseModelConfig(std::string_view(text).substr(0, length))) << length;
  }
}

TEST(ModelConfig, EverySingleByteChangeIsAnErrorOrAValidConfiguration) {
  const std::string text = NanoJson().dump();
  for (size_t i = 0; i < text.size(); ++i) {
    for (char replacement : {'9', '-', '"', ']', '\xff'}) {
      std::string changed = text;
      changed[i] = replacement;
      const auto config = ParseModelConfig(changed);
      if (!config) continue;
      ASSERT_EQ(config->roles.size(), static_cast<size_t>(config->num_layers));
    }
  }
}

}  // namespace
}  // namespace deepinfer
