#include "tests/unit/loader/tiny_checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

namespace deepinfer {

namespace fs = std::filesystem;
using nlohmann::json;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "deepinfer-loader-XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string SafetensorsBytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + data;
}

std::string SafetensorsBytes(const FileTensors& tensors) {
  json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  return SafetensorsBytes(header.dump(), data);
}

StoredTensor Described(const std::string& name, DType dtype, const Shape& shape,
                       const std::string& shard) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.view.dtype = dtype;
  tensor.view.shape = shape;
  tensor.shard = shard;
  return tensor;
}

void WriteBytes(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  EXPECT_TRUE(out.good()) << path;
}

json TinyConfigJson() {
  return json::parse(R"({
    "architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41",
    "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
    "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic",
      "weight_block_size": [32, 32], "scale_fmt": "ue8m0", "expert_dtype": "fp4"},
    "text_config": {
      "model_type": "deepseek_v41_text", "vocab_size": 48, "hidden_size": 32,
      "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
      "qk_rope_head_dim": 16, "q_lora_rank": 32, "o_lora_rank": 16, "o_groups": 2,
      "sliding_window": 8, "rope_theta": 10000, "compress_rope_theta": 160000,
      "rope_scaling": {"rope_type": "yarn", "factor": 4, "beta_fast": 32, "beta_slow": 1,
        "original_max_position_embeddings": 64},
      "max_position_embeddings": 256, "rms_norm_eps": 1e-20, "hidden_act": "silu",
      "compress_ratios": [0, 2, 1, 0], "kv_source_layer_ids": [1, 2],
      "index_source_layer_ids": [1, 2], "candidate_source_layer_id": 2,
      "candidate_topk_blocks": 2, "candidate_block_size": 4, "index_n_heads": 2,
      "index_head_dim": 32, "index_topk": 4,
      "n_routed_experts": 3, "n_shared_experts": 1, "num_experts_per_tok": 2,
      "moe_intermediate_size": 32, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
      "norm_topk_prob": true, "routed_scaling_factor": 1.5, "swiglu_limit": 10.0,
      "hc_mult": 2, "hc_sinkhorn_iters": 3, "hc_eps": 1e-6,
      "engram_layer_ids": [0], "engram_num_embeddings": [60], "engram_max_ngram_size": 3,
      "engram_vocab_size": 10, "engram_n_heads": 2, "engram_head_dim": 32,
      "engram_pad_token_id": 2, "engram_compressed_vocab_size": 40,
      "num_nextn_predict_layers": 1, "dspark_block_size": 2, "dspark_noise_token_id": 47,
      "dspark_target_layer_ids": [1, 2], "dspark_markov_rank": 8, "dspark_n_routed_experts": 2,
      "dspark_num_experts_per_tok": 1}})");
}

ModelConfig TinyConfig() {
  auto config = ParseModelConfig(TinyConfigJson().dump());
  EXPECT_TRUE(config) << config.error().message;
  return config.value_or(ModelConfig{});
}

FileTensors TinyTensors() {
  FileTensors tensors;
  for (const ExpectedTensor& want : ExpectedTensors(TinyConfig())) {
    const TensorView view{want.dtype, want.shape, nullptr};
    tensors[want.name] = {std::string(DTypeName(want.dtype)), want.shape,
                          std::string(view.bytes(), '\x40')};
  }
  return tensors;
}

void WriteConfig(const fs::path& dir, const json& config) {
  WriteBytes(dir / "config.json", config.dump());
}

void WriteSingle(const fs::path& dir, const FileTensors& tensors) {
  WriteConfig(dir, TinyConfigJson());
  WriteBytes(dir / "model.safetensors", SafetensorsBytes(tensors));
}

std::string ShardName(int shard, int shards) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

json WriteSharded(const fs::path& dir, const FileTensors& tensors, int shards) {
  WriteConfig(dir, TinyConfigJson());
  std::vector<FileTensors> parts(shards);
  json map = json::object();
  int next = 0;
  for (const auto& [name, tensor] : tensors) {
    map[name] = ShardName(next, shards);
    parts[next][name] = tensor;
    next = (next + 1) % shards;
  }
  for (int i = 0; i < shards; ++i) {
    WriteBytes(dir / ShardName(i, shards), SafetensorsBytes(parts[i]));
  }
  const json index = {{"metadata", {{"total_size", 0}}}, {"weight_map", map}};
  WriteBytes(dir / "model.safetensors.index.json", index.dump());
  return index;
}

}  // namespace deepinfer
