// The architecture of one checkpoint: config.json of the DeepSeek-V4.1 release, checked.
// Source: spec model-v41 section 1.1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace deepinfer {

// What one layer does about compressed KV (spec model-v41 section 2.5.1). Derived from the
// configuration; -1 means "none".
struct LayerRole {
  int ratio = 0;                  // 0: window only; 1 or 2: tokens a compressed entry
  int kv_source = -1;             // layer whose compressed entries this layer reads
  int index_source = -1;          // layer whose selection list this layer uses
  bool owns_kv = false;           // has a compressor and an index-key projection
  bool owns_index = false;        // has index queries and makes a selection list
  bool makes_candidates = false;  // publishes the candidate mask
  bool uses_candidates = false;   // restricts its selection to the candidate mask
  int engram = -1;                // index of the Engram table applied before this layer
  int tap = -1;                   // index among the draft module's input taps
};

struct RopeScaling {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  int64_t original_max_position_embeddings = 0;
};

// Every field is inside its allowed range once ParseModelConfig returned it.
struct ModelConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int64_t head_dim = 0;
  int64_t rope_dim = 0;  // last rope_dim values of a head are rotated
  int64_t q_lora_rank = 0;
  int64_t o_lora_rank = 0;  // per group
  int o_groups = 0;
  int64_t sliding_window = 0;
  double rope_theta = 0;           // layers of ratio 0 and the draft stages
  double compress_rope_theta = 0;  // layers of ratio > 0, with rope_scaling
  RopeScaling rope_scaling;
  int64_t max_position_embeddings = 0;
  float rms_norm_eps = 0;
  std::vector<int> compress_ratios;  // num_layers + num_draft_stages entries
  std::vector<int> kv_source_layers;
  std::vector<int> index_source_layers;
  int index_heads = 0;
  int64_t index_head_dim = 0;
  int64_t index_topk = 0;
  int candidate_source_layer = -1;
  int64_t candidate_topk_blocks = 0;
  int64_t candidate_block_size = 0;

  int num_experts = 0;
  int experts_per_token = 0;
  int64_t moe_intermediate_size = 0;
  float routed_scaling_factor = 1;
  float swiglu_limit = 0;

  int hc_mult = 0;
  int hc_sinkhorn_iters = 0;
  float hc_eps = 0;

  std::vector<int> engram_layers;
  std::vector<int64_t> engram_num_embeddings;
  int engram_max_ngram = 0;
  int64_t engram_vocab_size = 0;  // where the search for the hash primes starts
  int engram_heads = 0;
  int64_t engram_head_dim = 0;
  int32_t engram_pad_token = 0;
  int64_t engram_compressed_vocab_size = 0;

  int num_draft_stages = 0;
  int draft_block_size = 0;
  int32_t draft_noise_token = 0;
  std::vector<int> draft_target_layers;
  int64_t draft_markov_rank = 0;
  int draft_num_experts = 0;
  int draft_experts_per_token = 0;

  int32_t bos_token = 0;
  int32_t eos_token = 1;
  int32_t pad_token = 2;
  int32_t image_token = -1;  // -1: the configuration names none
  bool has_vision = false;   // a vision_config stands in the file

  std::vector<LayerRole> roles;  // num_layers entries

  // The first layer of the decoder half: the last KV source. Layers after it own no global KV,
  // so for prompt tokens whose output is not needed only its KV projections run
  // (spec model-v41 section 5.1).
  int decoder_layer = 0;

  // Rows of the mHC projection: (2 + hc_mult) * hc_mult.
  int hc_mixes() const { return (2 + hc_mult) * hc_mult; }
  // Table rows looked up a token: (max n-gram - 1) * heads.
  int engram_columns() const { return (engram_max_ngram - 1) * engram_heads; }

  // Record sizes in bytes (spec model-v41 section 4): main KV entry (e2m1 + one e4m3 scale per
  // 16), index-key entry (e2m1 + one e8m0 scale per 32), window entry (e4m3 + one e8m0 per 32).
  int64_t kv_entry_bytes() const { return head_dim / 2 + head_dim / 16; }
  int64_t index_entry_bytes() const { return index_head_dim / 2 + index_head_dim / 32; }
  int64_t window_entry_bytes() const { return head_dim + head_dim / 32; }
  // Global KV bytes a token, summed over the KV sources (890 in the release).
  double kv_bytes_per_token() const;
};

// Parses the release's nested config.json. Errors name the key, its value and the allowed range;
// an architecture other than DeepseekV41ForCausalLM is kUnsupported.
Result<ModelConfig> ParseModelConfig(std::string_view json);

}  // namespace deepinfer
