#include "loader/config_presets.h"

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

// DeepSeek-V4.1-Flash without its vision tower (spec model-v41 section 1.1).
constexpr char kRelease[] = R"({
  "architectures": ["DeepseekV41ForCausalLM"],
  "model_type": "deepseek_v41",
  "dtype": "bfloat16",
  "transformers_version": "5.6.0",
  "bos_token_id": 0,
  "eos_token_id": 1,
  "pad_token_id": 2,
  "image_token_id": 129264,
  "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic",
      "weight_block_size": [32, 32], "scale_fmt": "ue8m0", "expert_dtype": "fp4"},
  "text_config": {
    "model_type": "deepseek_v41_text",
    "vocab_size": 129280,
    "hidden_size": 5120,
    "moe_intermediate_size": 2304,
    "num_hidden_layers": 40,
    "num_attention_heads": 64,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "qk_rope_head_dim": 64,
    "q_lora_rank": 1280,
    "o_lora_rank": 1024,
    "o_groups": 8,
    "hidden_act": "silu",
    "swiglu_limit": 10.0,
    "rms_norm_eps": 1e-20,
    "attention_bias": false,
    "attention_dropout": 0.0,
    "initializer_range": 0.02,
    "use_cache": true,
    "tie_word_embeddings": false,
    "max_position_embeddings": 1048576,
    "rope_theta": 10000,
    "rope_scaling": {"rope_type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1,
        "original_max_position_embeddings": 65536},
    "n_routed_experts": 384,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "scoring_func": "sqrtsoftplus",
    "topk_method": "noaux_tc",
    "norm_topk_prob": true,
    "routed_scaling_factor": 1.5,
    "sliding_window": 128,
    "compress_ratios": [0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
    "compress_rope_theta": 160000,
    "kv_source_layer_ids": [2, 8, 14, 20],
    "index_source_layer_ids": [2, 8, 14, 20, 24, 28, 32, 36],
    "index_n_heads": 32,
    "index_head_dim": 128,
    "index_topk": 512,
    "candidate_source_layer_id": 20,
    "candidate_topk_blocks": 2048,
    "candidate_block_size": 8,
    "hc_mult": 4,
    "hc_sinkhorn_iters": 20,
    "hc_eps": 1e-06,
    "engram_layer_ids": [1, 14],
    "engram_num_embeddings": [384006168, 384016682],
    "engram_max_ngram_size": 4,
    "engram_vocab_size": 16000000,
    "engram_n_heads": 8,
    "engram_head_dim": 256,
    "engram_pad_token_id": 2,
    "engram_compressed_vocab_size": 99092,
    "num_nextn_predict_layers": 3,
    "dspark_block_size": 5,
    "dspark_noise_token_id": 128799,
    "dspark_target_layer_ids": [37, 38, 39],
    "dspark_markov_rank": 256,
    "dspark_n_routed_experts": 128,
    "dspark_num_experts_per_tok": 3
  }
})";

// What differs from the release. Layers are arranged by CheckpointDesign's pattern.
constexpr char kMid[] = R"({
  "vocab_size": 65536, "hidden_size": 3072, "moe_intermediate_size": 2048,
  "num_hidden_layers": 18, "num_attention_heads": 32, "q_lora_rank": 1024,
  "n_routed_experts": 24, "num_experts_per_tok": 8,
  "compress_ratios": [0, 0, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
  "kv_source_layer_ids": [2, 8, 9], "index_source_layer_ids": [2, 8, 9, 13, 17],
  "candidate_source_layer_id": 9, "engram_layer_ids": [1, 14], "engram_vocab_size": 50000,
  "dspark_target_layer_ids": [15, 16, 17], "dspark_noise_token_id": 65535,
  "dspark_n_routed_experts": 8
})";

constexpr char kTiny[] = R"({
  "vocab_size": 8192, "hidden_size": 128, "moe_intermediate_size": 64,
  "num_hidden_layers": 6, "num_attention_heads": 4, "head_dim": 64, "qk_rope_head_dim": 32,
  "q_lora_rank": 64, "o_lora_rank": 64, "o_groups": 2, "sliding_window": 16,
  "max_position_embeddings": 4096,
  "rope_scaling": {"rope_type": "yarn", "factor": 4, "beta_fast": 32, "beta_slow": 1,
                   "original_max_position_embeddings": 1024},
  "compress_ratios": [0, 0, 2, 1, 1, 1, 0, 0, 0],
  "kv_source_layer_ids": [2, 3], "index_source_layer_ids": [2, 3],
  "index_n_heads": 16, "index_head_dim": 64, "index_topk": 8,
  "candidate_source_layer_id": 3, "candidate_topk_blocks": 3, "candidate_block_size": 4,
  "n_routed_experts": 16, "num_experts_per_tok": 4,
  "engram_layer_ids": [1], "engram_vocab_size": 97, "engram_n_heads": 4, "engram_head_dim": 32,
  "dspark_target_layer_ids": [3, 4, 5], "dspark_noise_token_id": 8191,
  "dspark_markov_rank": 32, "dspark_n_routed_experts": 8, "dspark_num_experts_per_tok": 2
})";

}  // namespace

Result<std::string> PresetConfig(std::string_view preset) {
  Json config = Json::parse(kRelease);
  if (preset != "release") {
    const char* changes = preset == "mid" ? kMid : preset == "tiny" ? kTiny : nullptr;
    if (changes == nullptr) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "there is no preset \"{}\"; allowed are release, mid and tiny", preset);
    }
    config["text_config"].update(Json::parse(changes));
    // Named by the tokenizer that the checkpoint gets.
    config.erase("image_token_id");
  }
  return config.dump();
}

}  // namespace deepinfer
