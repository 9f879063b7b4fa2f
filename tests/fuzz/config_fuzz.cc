// Whatever the text is: an error with a message, or a configuration that holds its promises.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/model_config.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config =
      deepinfer::ParseModelConfig(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!config) {
    Require(!config.error().message.empty());
    return 0;
  }
  Require(config->roles.size() == static_cast<size_t>(config->num_layers));
  Require(config->experts_per_token <= config->num_experts);
  Require(config->rope_dim <= config->head_dim && config->rope_dim <= config->index_head_dim);
  Require(config->num_heads % config->o_groups == 0);
  Require(config->kv_bytes_per_token() > 0);
  for (int layer = 0; layer < config->num_layers; ++layer) {
    const deepinfer::LayerRole& role = config->roles[layer];
    if (role.ratio == 0) continue;
    Require(role.kv_source >= 0 && role.kv_source <= role.index_source);
    Require(role.index_source <= layer);
    Require(config->roles[role.kv_source].owns_kv && config->roles[role.index_source].owns_index);
    Require(config->roles[role.kv_source].ratio == role.ratio);
    Require(!role.owns_kv || layer <= config->decoder_layer);
  }
  return 0;
}
