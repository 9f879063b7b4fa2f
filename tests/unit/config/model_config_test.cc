// Good configurations: every value, the derived layer roles, what may be absent.
#include "config/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_files.h"

namespace deepinfer {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

ModelConfig MustParse(const json& document) {
  auto config = Parse(document);
  EXPECT_TRUE(config) << config.error().message;
  return config.value_or(ModelConfig{});
}

TEST(ModelConfig, ReadsEveryValueOfTheRelease) {
  const ModelConfig c = MustParse(ReleaseJson());
  EXPECT_EQ(c.vocab_size, 129280);
  EXPECT_EQ(c.hidden_size, 5120);
  EXPECT_EQ(c.num_layers, 40);
  EXPECT_EQ(c.num_heads, 64);
  EXPECT_EQ(c.head_dim, 512);
  EXPECT_EQ(c.rope_dim, 64);
  EXPECT_EQ(c.q_lora_rank, 1280);
  EXPECT_EQ(c.o_lora_rank, 1024);
  EXPECT_EQ(c.o_groups, 8);
  EXPECT_EQ(c.sliding_window, 128);
  EXPECT_EQ(c.rope_theta, 10000);
  EXPECT_EQ(c.compress_rope_theta, 160000);
  EXPECT_EQ(c.rope_scaling.factor, 16);
  EXPECT_EQ(c.rope_scaling.beta_fast, 32);
  EXPECT_EQ(c.rope_scaling.beta_slow, 1);
  EXPECT_EQ(c.rope_scaling.original_max_position_embeddings, 65536);
  EXPECT_EQ(c.max_position_embeddings, 1048576);
  EXPECT_EQ(c.rms_norm_eps, 1e-20f);
  EXPECT_EQ(c.compress_ratios.size(), 43u);
  EXPECT_THAT(c.kv_source_layers, ElementsAre(2, 8, 14, 20));
  EXPECT_THAT(c.index_source_layers, ElementsAre(2, 8, 14, 20, 24, 28, 32, 36));
  EXPECT_EQ(c.index_heads, 32);
  EXPECT_EQ(c.index_head_dim, 128);
  EXPECT_EQ(c.index_topk, 512);
  EXPECT_EQ(c.candidate_source_layer, 20);
  EXPECT_EQ(c.candidate_topk_blocks, 2048);
  EXPECT_EQ(c.candidate_block_size, 8);
  EXPECT_EQ(c.num_experts, 384);
  EXPECT_EQ(c.experts_per_token, 6);
  EXPECT_EQ(c.moe_intermediate_size, 2304);
  EXPECT_EQ(c.routed_scaling_factor, 1.5f);
  EXPECT_EQ(c.swiglu_limit, 10.0f);
  EXPECT_EQ(c.hc_mult, 4);
  EXPECT_EQ(c.hc_sinkhorn_iters, 20);
  EXPECT_EQ(c.hc_eps, 1e-6f);
  EXPECT_EQ(c.hc_mixes(), 24);
  EXPECT_THAT(c.engram_layers, ElementsAre(1, 14));
  EXPECT_THAT(c.engram_num_embeddings, ElementsAre(384006168, 384016682));
  EXPECT_EQ(c.engram_max_ngram, 4);
  EXPECT_EQ(c.engram_vocab_size, 16000000);
  EXPECT_EQ(c.engram_heads, 8);
  EXPECT_EQ(c.engram_head_dim, 256);
  EXPECT_EQ(c.engram_pad_token, 2);
  EXPECT_EQ(c.engram_compressed_vocab_size, 99092);
  EXPECT_EQ(c.engram_columns(), 24);
  EXPECT_EQ(c.num_draft_stages, 3);
  EXPECT_EQ(c.draft_block_size, 5);
  EXPECT_EQ(c.draft_noise_token, 128799);
  EXPECT_THAT(c.draft_target_layers, ElementsAre(37, 38, 39));
  EXPECT_EQ(c.draft_markov_rank, 256);
  EXPECT_EQ(c.draft_num_experts, 128);
  EXPECT_EQ(c.draft_experts_per_token, 3);
  EXPECT_EQ(c.bos_token, 0);
  EXPECT_EQ(c.eos_token, 1);
  EXPECT_EQ(c.pad_token, 2);
  EXPECT_EQ(c.image_token, 129264);
  EXPECT_TRUE(c.has_vision);
}

TEST(ModelConfig, RecordSizesOfTheReleaseAddUpTo890BytesAToken) {
  const ModelConfig c = MustParse(ReleaseJson());
  EXPECT_EQ(c.kv_entry_bytes(), 288);
  EXPECT_EQ(c.index_entry_bytes(), 68);
  EXPECT_EQ(c.window_entry_bytes(), 528);
  EXPECT_EQ(c.kv_bytes_per_token(), 890);
}

TEST(ModelConfig, LayerRolesOfTheReleaseFollowTheSpecificationTable) {
  const ModelConfig c = MustParse(ReleaseJson());
  ASSERT_EQ(c.roles.size(), 40u);
  EXPECT_EQ(c.decoder_layer, 20);
  const auto latest = [](const std::vector<int>& sources, int layer) {
    int best = -1;
    for (int source : sources) best = source <= layer ? source : best;
    return best;
  };
  for (int layer = 0; layer < 40; ++layer) {
    SCOPED_TRACE(layer);
    const LayerRole& role = c.roles[layer];
    EXPECT_EQ(role.ratio, layer < 2 ? 0 : layer < 20 ? 2 : 1);
    EXPECT_EQ(role.kv_source, latest({2, 8, 14, 20}, layer));
    EXPECT_EQ(role.index_source, latest({2, 8, 14, 20, 24, 28, 32, 36}, layer));
    EXPECT_EQ(role.owns_kv, layer == 2 || layer == 8 || layer == 14 || layer == 20);
    EXPECT_EQ(role.owns_index, role.owns_kv || (layer > 20 && layer % 4 == 0));
    EXPECT_EQ(role.makes_candidates, layer == 20);
    EXPECT_EQ(role.uses_candidates, layer > 20 && layer % 4 == 0);
    EXPECT_EQ(role.engram, layer == 1 ? 0 : layer == 14 ? 1 : -1);
    EXPECT_EQ(role.tap, layer >= 37 ? layer - 37 : -1);
  }
}

TEST(ModelConfig, ReadsNanoWhoseTokenIdsStandTwiceAndThatHasNoVision) {
  const ModelConfig c = MustParse(NanoJson());
  EXPECT_EQ(c.num_layers, 12);
  EXPECT_EQ(c.num_draft_stages, 2);
  EXPECT_EQ(c.decoder_layer, 6);
  EXPECT_EQ(c.image_token, 8185);
  EXPECT_FALSE(c.has_vision);
  // Ratio 2 at layers 2 and 4, ratio 1 at layer 6: (72 + 34) * 2.
  EXPECT_EQ(c.kv_bytes_per_token(), 212);
}

TEST(ModelConfig, ReadsTheToysWithTheirUnusualArrangements) {
  const auto folder = SourcePath("../shared/goldens");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  auto text = ReadFile(folder / "toy-b/checkpoint/config.json");
  ASSERT_TRUE(text);
  auto toy_b = ParseModelConfig(*text);
  ASSERT_TRUE(toy_b) << toy_b.error().message;
  EXPECT_FALSE(toy_b->has_vision);
  EXPECT_EQ(toy_b->roles[2].ratio, 0);
  EXPECT_EQ(toy_b->roles[2].kv_source, -1) << "a window-only layer reads no source";
  EXPECT_EQ(toy_b->roles[3].kv_source, 0);
  EXPECT_TRUE(toy_b->roles[3].owns_index);
  EXPECT_FALSE(toy_b->roles[3].owns_kv);
  EXPECT_FALSE(toy_b->roles[3].uses_candidates) << "it lies before the candidate source";
  EXPECT_TRUE(toy_b->roles[5].uses_candidates);
  EXPECT_EQ(toy_b->roles[4].tap, 1);
  auto toy_a = ReadFile(folder / "toy-a/checkpoint/config.json");
  ASSERT_TRUE(toy_a);
  EXPECT_TRUE(ParseModelConfig(*toy_a));
}

TEST(ModelConfig, UnknownKeysAreTolerated) {
  json document = ReleaseJson();
  document["some_future_key"] = {{"nested", {1, 2, 3}}};
  document["text_config"]["another"] = "text";
  document["vision_config"] = json::object();
  EXPECT_TRUE(Parse(document));
}

TEST(ModelConfig, TokenIdsMayStandInTextConfigOnly) {
  json document = NanoJson();
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) document.erase(key);
  document["text_config"]["eos_token_id"] = 77;
  EXPECT_EQ(MustParse(document).eos_token, 77);
}

TEST(ModelConfig, OptionalPartsMayBeAbsent) {
  json document = ReleaseJson();
  document.erase("vision_config");
  document.erase("image_token_id");
  json& text = document["text_config"];
  text["candidate_source_layer_id"] = -1;
  text.erase("candidate_topk_blocks");
  text.erase("candidate_block_size");
  text["num_nextn_predict_layers"] = 0;
  text["compress_ratios"].erase(40);
  text["compress_ratios"].erase(40);
  text["compress_ratios"].erase(40);
  text["engram_layer_ids"] = json::array();
  const json before = text;
  for (const auto& [key, value] : before.items()) {
    if (key.starts_with("dspark_") || (key.starts_with("engram_") && key != "engram_layer_ids")) {
      text.erase(key);
    }
  }
  const ModelConfig c = MustParse(document);
  EXPECT_EQ(c.candidate_source_layer, -1);
  EXPECT_EQ(c.image_token, -1);
  EXPECT_EQ(c.num_draft_stages, 0);
  EXPECT_TRUE(c.engram_layers.empty());
  for (const LayerRole& role : c.roles) {
    EXPECT_FALSE(role.makes_candidates || role.uses_candidates);
    EXPECT_EQ(role.tap, -1);
    EXPECT_EQ(role.engram, -1);
  }
}

}  // namespace
}  // namespace deepinfer
