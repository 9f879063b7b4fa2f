#include "config/layer_roles.h"

#include <algorithm>

namespace deepinfer {
namespace {

bool Contains(const std::vector<int>& sorted, int value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

// The latest source with id <= layer, or -1. `sorted` is ascending.
int LatestSource(const std::vector<int>& sorted, int layer) {
  const auto after = std::upper_bound(sorted.begin(), sorted.end(), layer);
  return after == sorted.begin() ? -1 : *std::prev(after);
}

int IndexOf(const std::vector<int>& values, int value) {
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? -1 : static_cast<int>(found - values.begin());
}

Status CheckSources(const ModelConfig& config) {
  for (int source : config.index_source_layers) {
    if (config.compress_ratios[source] == 0) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "text_config.index_source_layer_ids names layer {}, whose compress_ratio is "
                       "0; a source needs a ratio of 1 or 2",
                       source);
    }
  }
  for (int source : config.kv_source_layers) {
    if (!Contains(config.index_source_layers, source)) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "text_config.kv_source_layer_ids names layer {}, which "
                       "index_source_layer_ids does not; every KV source is an index source",
                       source);
    }
  }
  const int candidate = config.candidate_source_layer;
  if (candidate >= 0 && !Contains(config.index_source_layers, candidate)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "text_config.candidate_source_layer_id is {}; it must be one of "
                     "index_source_layer_ids, or -1 for none",
                     candidate);
  }
  if (candidate >= 0 && candidate < config.kv_source_layers.back()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "text_config.candidate_source_layer_id is {}, before the last KV source {}; "
                     "later index sources would read other entries than its candidates",
                     candidate, config.kv_source_layers.back());
  }
  return {};
}

Status AssignSources(const ModelConfig& config, int layer, LayerRole& role) {
  role.kv_source = LatestSource(config.kv_source_layers, layer);
  role.index_source = LatestSource(config.index_source_layers, layer);
  if (role.kv_source < 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "layer {} has compress_ratio {}, but text_config.kv_source_layer_ids names no "
                     "layer at or before it",
                     layer, role.ratio);
  }
  // Every KV source is an index source, so the index source lies at or after the KV source and
  // selects among the same entries.
  for (int source : {role.kv_source, role.index_source}) {
    if (config.compress_ratios[source] != role.ratio) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "layer {} has compress_ratio {}, but its source, layer {}, has {}; they "
                       "must be equal",
                       layer, role.ratio, source, config.compress_ratios[source]);
    }
  }
  role.owns_kv = role.kv_source == layer;
  role.owns_index = role.index_source == layer;
  role.makes_candidates = layer == config.candidate_source_layer;
  role.uses_candidates = role.owns_index && config.candidate_source_layer >= 0 &&
                         layer > config.candidate_source_layer;
  return {};
}

}  // namespace

Status AssignLayerRoles(ModelConfig& config) {
  DI_RETURN_IF_ERROR(CheckSources(config));
  config.roles.assign(config.num_layers, LayerRole{});
  for (int layer = 0; layer < config.num_layers; ++layer) {
    LayerRole& role = config.roles[layer];
    role.ratio = config.compress_ratios[layer];
    role.engram = IndexOf(config.engram_layers, layer);
    role.tap = IndexOf(config.draft_target_layers, layer);
    if (role.ratio > 0) DI_RETURN_IF_ERROR(AssignSources(config, layer, role));
  }
  config.decoder_layer = config.kv_source_layers.back();
  return {};
}

double ModelConfig::kv_bytes_per_token() const {
  double bytes = 0;
  for (int source : kv_source_layers) {
    bytes += static_cast<double>(kv_entry_bytes() + index_entry_bytes()) / compress_ratios[source];
  }
  return bytes;
}

}  // namespace deepinfer
