// The renderings of CheckpointReport.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "loader/checkpoint_report.h"

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

// "12,345,678"
std::string Grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

// Also with a readable size: "2,703,360 (2.7 MB)"
std::string Bytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return Grouped(bytes);
  return fmt::format("{} ({:.{}f} {})", Grouped(bytes), value, value < 100 ? 2 : 1, kUnits[unit]);
}

std::string Layer(int layer) { return layer < 0 ? "-" : std::to_string(layer); }

std::string Architecture(const CheckpointReport& report) {
  const ModelConfig& c = report.config;
  std::string out;
  const auto line = [&](std::string_view key, const std::string& value) {
    out += fmt::format("  {:<18}{}\n", key, value);
  };
  line("vocabulary", fmt::format("{} tokens", Grouped(c.vocab_size)));
  line("layers",
       fmt::format("{}, hidden {}, mHC streams {}", c.num_layers, c.hidden_size, c.hc_mult));
  line("attention",
       fmt::format("{} heads x {} (rope {}), 1 KV head, q rank {}, o {} groups x {}", c.num_heads,
                   c.head_dim, c.rope_dim, c.q_lora_rank, c.o_groups, c.o_lora_rank));
  line("window", fmt::format("{} tokens", c.sliding_window));
  line("context", fmt::format("{} tokens", Grouped(c.max_position_embeddings)));
  line("indexer",
       fmt::format("{} heads x {}, top {}", c.index_heads, c.index_head_dim, c.index_topk));
  if (c.candidate_source_layer >= 0) {
    line("candidates", fmt::format("{} blocks of {} from layer {}", c.candidate_topk_blocks,
                                   c.candidate_block_size, c.candidate_source_layer));
  }
  line("experts", fmt::format("{} routed (top {}) + 1 shared of width {}", c.num_experts,
                              c.experts_per_token, c.moe_intermediate_size));
  if (!c.engram_layers.empty()) {
    std::string rows;
    for (const int64_t count : c.engram_num_embeddings) {
      rows += fmt::format("{}{}", rows.empty() ? "" : " + ", Grouped(count));
    }
    line("Engram", fmt::format("{} rows x {}, n-grams up to {}, {} heads", rows, c.engram_head_dim,
                               c.engram_max_ngram, c.engram_heads));
  }
  if (c.num_draft_stages > 0) {
    line("draft", fmt::format("{} stages, block {}, {} experts (top {}), Markov rank {}",
                              c.num_draft_stages, c.draft_block_size, c.draft_num_experts,
                              c.draft_experts_per_token, c.draft_markov_rank));
  }
  return out;
}

std::string LayerTable(const ModelConfig& config) {
  std::string out = "  layer  ratio  KV from  index from  candidates  Engram  tap  half\n";
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const LayerRole& role = config.roles[layer];
    const auto source = [&](int from) { return from == layer ? "itself" : Layer(from); };
    const char* candidates = role.makes_candidates ? "makes" : role.uses_candidates ? "uses" : "-";
    out += fmt::format("  {:>5}  {:>5}  {:>7}  {:>10}  {:>10}  {:>6}  {:>3}  {}\n", layer,
                       role.ratio, source(role.kv_source), source(role.index_source), candidates,
                       Layer(role.engram), Layer(role.tap),
                       layer < config.decoder_layer ? "encoder" : "decoder");
  }
  return out;
}

std::string KindTable(const CheckpointReport& report) {
  std::string out;
  const auto row = [&](std::string_view name, const KindTotal& total) {
    out += fmt::format("  {:<20}{:>10} tensors  {:>32}\n", name, Grouped(total.tensors),
                       Bytes(total.bytes));
  };
  for (size_t i = 0; i < kNumTensorKinds; ++i) {
    if (report.kinds[i].tensors > 0) row(KindName(static_cast<TensorKind>(i)), report.kinds[i]);
  }
  row("total", report.total);
  return out;
}

std::string KvTable(const CheckpointReport& report) {
  std::string out;
  for (const KvSourceRow& source : report.kv_sources) {
    out += fmt::format("  layer {:<3} ({} B KV + {} B index key) / {} {} = {:g} B/token\n",
                       source.layer, source.kv_entry_bytes, source.index_entry_bytes, source.ratio,
                       source.ratio == 1 ? "token " : "tokens", source.bytes_per_token());
  }
  out += fmt::format(
      "  global KV: {:g} B/token, {} at the full context\n", report.kv_bytes_per_token,
      Bytes(static_cast<int64_t>(report.kv_bytes_per_token *
                                 static_cast<double>(report.config.max_position_embeddings))));
  out += fmt::format("  window KV: {} a sequence", Bytes(report.window_bytes_per_sequence));
  if (report.draft_window_bytes_per_sequence > 0) {
    out +=
        fmt::format(", and {} for the draft stages", Bytes(report.draft_window_bytes_per_sequence));
  }
  return out + "\n";
}

std::string ActiveTable(const ActiveBytes& active) {
  std::string out;
  out += fmt::format("  dense weights     {}\n", Bytes(active.dense));
  out += fmt::format("  chosen experts    {}\n", Bytes(active.routed_experts));
  out += fmt::format("  embedding row     {}\n", Bytes(active.embedding_row));
  out += fmt::format("  Engram rows       {}\n", Bytes(active.engram_rows));
  out += fmt::format("  a token in all    {}\n", Bytes(active.token()));
  if (active.draft > 0) out += fmt::format("  a drafted block   {}\n", Bytes(active.draft));
  return out;
}

std::string TensorTable(const CheckpointReport& report) {
  size_t width = 4;
  for (const TensorRow& tensor : report.tensors) width = std::max(width, tensor.name.size());
  std::string out;
  for (const TensorRow& tensor : report.tensors) {
    out += fmt::format("  {:<{}}  {:<7}  {:<18}  {:>18}\n", tensor.name, width,
                       DTypeName(tensor.dtype), ShapeString(tensor.shape), Grouped(tensor.bytes));
  }
  return out;
}

Json RoleJson(const ModelConfig& config) {
  Json roles = Json::array();
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const LayerRole& role = config.roles[layer];
    const auto number = [](int value) { return value < 0 ? Json() : Json(value); };
    roles.push_back({{"layer", layer},
                     {"ratio", role.ratio},
                     {"kv_source", number(role.kv_source)},
                     {"index_source", number(role.index_source)},
                     {"makes_candidates", role.makes_candidates},
                     {"uses_candidates", role.uses_candidates},
                     {"engram", number(role.engram)},
                     {"tap", number(role.tap)}});
  }
  return roles;
}

Json ArchitectureJson(const ModelConfig& c) {
  return {{"vocab_size", c.vocab_size},
          {"hidden_size", c.hidden_size},
          {"layers", c.num_layers},
          {"decoder_layer", c.decoder_layer},
          {"heads", c.num_heads},
          {"head_dim", c.head_dim},
          {"sliding_window", c.sliding_window},
          {"max_position_embeddings", c.max_position_embeddings},
          {"index_topk", c.index_topk},
          {"experts", c.num_experts},
          {"experts_per_token", c.experts_per_token},
          {"moe_intermediate_size", c.moe_intermediate_size},
          {"hc_mult", c.hc_mult},
          {"engram_rows", c.engram_num_embeddings},
          {"draft_stages", c.num_draft_stages},
          {"has_vision", c.has_vision}};
}

}  // namespace

std::string ReportText(const CheckpointReport& report, bool all_tensors) {
  std::string out = report.folder.empty() ? "" : report.folder + "\n\n";
  out += "Architecture\n" + Architecture(report);
  out += "\nLayers\n" + LayerTable(report.config);
  if (all_tensors) out += "\nTensors\n" + TensorTable(report);
  out +=
      fmt::format("\nBytes by kind{}\n",
                  report.has_weights ? fmt::format(" ({} weight files)", report.num_shards) : "");
  out += KindTable(report);
  out += "\nWeight bytes that a generated token reads\n" + ActiveTable(report.active);
  out += "\nKV cache\n" + KvTable(report);
  if (!report.notes.empty()) out += "\nNotes\n";
  for (const std::string& note : report.notes) out += "  " + note + "\n";
  return out;
}

std::string ReportJson(const CheckpointReport& report) {
  Json out = {{"folder", report.folder},
              {"has_weights", report.has_weights},
              {"weight_files", report.num_shards},
              {"architecture", ArchitectureJson(report.config)},
              {"layers", RoleJson(report.config)}};
  Json& kinds = out["bytes_by_kind"] = Json::object();
  for (size_t i = 0; i < kNumTensorKinds; ++i) {
    const KindTotal& total = report.kinds[i];
    if (total.tensors == 0) continue;
    kinds[std::string(KindName(static_cast<TensorKind>(i)))] = {{"tensors", total.tensors},
                                                                {"bytes", total.bytes}};
  }
  out["total"] = {{"tensors", report.total.tensors}, {"bytes", report.total.bytes}};
  out["active_bytes_per_token"] = {{"dense", report.active.dense},
                                   {"routed_experts", report.active.routed_experts},
                                   {"embedding_row", report.active.embedding_row},
                                   {"engram_rows", report.active.engram_rows},
                                   {"total", report.active.token()},
                                   {"draft_block", report.active.draft}};
  Json& sources = out["kv_sources"] = Json::array();
  for (const KvSourceRow& source : report.kv_sources) {
    sources.push_back({{"layer", source.layer},
                       {"ratio", source.ratio},
                       {"kv_entry_bytes", source.kv_entry_bytes},
                       {"index_entry_bytes", source.index_entry_bytes},
                       {"bytes_per_token", source.bytes_per_token()}});
  }
  out["kv_bytes_per_token"] = report.kv_bytes_per_token;
  out["window_bytes_per_sequence"] = report.window_bytes_per_sequence;
  out["draft_window_bytes_per_sequence"] = report.draft_window_bytes_per_sequence;
  out["notes"] = report.notes;
  Json& tensors = out["tensors"] = Json::array();
  for (const TensorRow& tensor : report.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", std::string(DTypeName(tensor.dtype))},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes},
                       {"kind", std::string(KindName(tensor.kind))}});
  }
  return out.dump(2) + "\n";
}

}  // namespace deepinfer
