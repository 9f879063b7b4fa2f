#include "model/v41/engram_hash.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "config/engram_primes.h"
#include "model/v41/numpy_random.h"

namespace deepinfer::model::v41 {

Result<EngramHash> EngramHash::Create(const ModelConfig& config, std::vector<int32_t> token_map) {
  EngramHash hash;
  if (config.engram_layers.empty()) return hash;
  if (static_cast<int64_t>(token_map.size()) != config.vocab_size) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "Engram token map has {} entries, the vocabulary {}", token_map.size(),
                     config.vocab_size);
  }
  const auto outside = std::find_if(token_map.begin(), token_map.end(), [&](int32_t id) {
    return id < 0 || id >= config.engram_compressed_vocab_size;
  });
  if (outside != token_map.end()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "Engram token map: id {} of token {} is outside [0, {})", *outside,
                     outside - token_map.begin(), config.engram_compressed_vocab_size);
  }
  hash.heads_ = config.engram_heads;
  hash.pad_ = token_map[config.engram_pad_token];
  hash.token_map_ = std::move(token_map);
  const int64_t columns = config.engram_columns();
  DI_ASSIGN_OR_RETURN(
      const std::vector<int64_t> primes,
      EngramPrimes(columns * std::ssize(config.engram_layers), config.engram_vocab_size));
  const int64_t bound = std::max<int64_t>(
      1, std::numeric_limits<int64_t>::max() / config.engram_compressed_vocab_size / 2);
  for (size_t i = 0; i < config.engram_layers.size(); ++i) {
    const auto first = primes.begin() + static_cast<int64_t>(i) * columns;
    Table table{{}, {first, first + columns}, std::vector<int64_t>(columns)};
    const int64_t rows = std::accumulate(first, first + columns, int64_t{0});
    if (rows != config.engram_num_embeddings[i]) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "engram_num_embeddings[{}] is {}; the hash of engram_vocab_size {} has {} "
                       "rows",
                       i, config.engram_num_embeddings[i], config.engram_vocab_size, rows);
    }
    NumpyRandom random(10007 * static_cast<uint64_t>(config.engram_layers[i]));
    for (int k = 0; k < config.engram_max_ngram; ++k) {
      table.multipliers.push_back(
          static_cast<int64_t>(random.Below(static_cast<uint64_t>(bound))) * 2 + 1);
    }
    std::exclusive_scan(first, first + columns, table.offsets.begin(), int64_t{0});
    hash.tables_.push_back(std::move(table));
  }
  return hash;
}

void EngramHash::Rows(int table, std::span<const int32_t> recent, int64_t* rows) const {
  const Table& t = tables_[table];
  bool blocked = false;  // sticky: nothing before a dead token counts
  int64_t hash = 0;
  size_t column = 0;
  for (size_t k = 0; k < recent.size(); ++k) {
    blocked = blocked || recent[k] == kDeadToken;
    // The product stays below 2^63 by the choice of the multipliers.
    hash ^= (blocked ? pad_ : recent[k]) * t.multipliers[k];
    for (int head = 0; k > 0 && head < heads_; ++head, ++column) {
      rows[column] = hash % t.primes[column] + t.offsets[column];
    }
  }
}

}  // namespace deepinfer::model::v41
