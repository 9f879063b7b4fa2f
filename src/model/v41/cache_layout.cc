#include "model/v41/cache_layout.h"

#include "base/random.h"

namespace deepinfer::model::v41 {
namespace {

// Takes the next `bytes` of a region that ends at `end` so far.
int64_t Place(int64_t bytes, int64_t& end) {
  const int64_t offset = end;
  end += (bytes + kCacheAlignment - 1) / kCacheAlignment * kCacheAlignment;
  return offset;
}

Status CheckOptions(const ModelConfig& config, const CacheOptions& options) {
  constexpr int64_t kMostBlockTokens = int64_t{1} << 20;
  if (options.block_tokens < 2 || options.block_tokens > kMostBlockTokens ||
      options.block_tokens % 2 != 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "block_tokens {} is not an even number in [2, {}]", options.block_tokens,
                     kMostBlockTokens);
  }
  if (options.max_rollback < 0 || options.max_rollback > config.sliding_window) {
    return MakeError(ErrorCode::kInvalidArgument, "max_rollback {} is outside [0, {}]",
                     options.max_rollback, config.sliding_window);
  }
  return {};
}

uint64_t SlotTag(const CacheLayout& layout) {
  uint64_t tag = RandomKey(1, "sequence slot");
  for (const int64_t number :
       {layout.window_bytes, layout.ring_slots, int64_t{layout.num_layers},
        int64_t{layout.num_draft_stages}, layout.tail_slots, layout.head_dim, layout.history_slots,
        layout.history_offset, layout.options.max_rollback, layout.slot_bytes}) {
    tag = MixBits(tag ^ static_cast<uint64_t>(number)) + 1;
  }
  for (const KvSourceLayout& source : layout.sources) {
    tag = MixBits(tag ^ static_cast<uint64_t>(source.tail_offset)) + 1;
  }
  return tag;
}

}  // namespace

Result<CacheLayout> CacheLayout::Create(const ModelConfig& config, const CacheOptions& options) {
  DI_RETURN_IF_ERROR(CheckOptions(config, options));
  CacheLayout layout;
  layout.options = options;
  layout.kv_bytes = config.kv_entry_bytes();
  layout.index_bytes = config.index_entry_bytes();
  layout.window_bytes = config.window_entry_bytes();
  layout.head_dim = config.head_dim;
  layout.num_layers = config.num_layers;
  layout.num_draft_stages = options.with_draft ? config.num_draft_stages : 0;
  layout.ring_slots = config.sliding_window + options.max_rollback;
  layout.tail_slots = options.max_rollback / 2 + 1;

  int64_t& slot_end = layout.slot_bytes;
  Place(sizeof(SlotHeader), slot_end);
  layout.rings_offset =
      Place((layout.num_layers + layout.num_draft_stages) * layout.ring_bytes(), slot_end);
  const int64_t tail_bytes =
      layout.tail_slots * 2 * config.head_dim * static_cast<int64_t>(sizeof(float));
  for (const int layer : config.kv_source_layers) {
    KvSourceLayout source;
    source.ratio = config.roles[layer].ratio;
    source.entries_per_block = options.block_tokens / source.ratio;
    source.kv_offset = Place(source.entries_per_block * layout.kv_bytes, layout.block_bytes);
    source.index_offset = Place(source.entries_per_block * layout.index_bytes, layout.block_bytes);
    if (source.ratio == 2) source.tail_offset = Place(tail_bytes, slot_end);
    layout.sources.push_back(source);
  }
  if (!config.engram_layers.empty()) {
    layout.history_slots = config.engram_max_ngram - 1 + options.max_rollback;
  }
  layout.history_offset =
      Place(layout.history_slots * static_cast<int64_t>(sizeof(int32_t)), slot_end);
  layout.slot_tag = SlotTag(layout);
  return layout;
}

}  // namespace deepinfer::model::v41
