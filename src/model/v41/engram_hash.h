// Engram's n-gram hash: from compressed token ids to table rows. Source: spec model-v41
// section 2.4.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "config/model_config.h"

namespace deepinfer::model::v41 {

// Compressed id of a token that takes no part: before the text's start, or in an image span.
inline constexpr int32_t kDeadToken = -1;

// Immutable, thread-safe.
class EngramHash {
 public:
  // `token_map`: compressed id of every vocabulary id. Errors: a map of another size or with ids
  // outside the compressed vocabulary; primes whose sums are not the configured table sizes.
  static Result<EngramHash> Create(const ModelConfig& config, std::vector<int32_t> token_map);

  int32_t Compress(int32_t token) const { return token_map_[token]; }

  // Rows of one token in table `table`: [columns], by n-gram size, then head. `recent` holds the
  // compressed ids of the token and the max n-gram - 1 before it, newest first.
  void Rows(int table, std::span<const int32_t> recent, int64_t* rows) const;

  const std::vector<int64_t>& multipliers(int table) const { return tables_[table].multipliers; }
  const std::vector<int64_t>& primes(int table) const { return tables_[table].primes; }

 private:
  struct Table {
    std::vector<int64_t> multipliers;  // [max n-gram]
    std::vector<int64_t> primes;       // [columns]
    std::vector<int64_t> offsets;      // [columns]: first table row of each column
  };

  int heads_ = 0;
  int64_t pad_ = 0;
  std::vector<int32_t> token_map_;
  std::vector<Table> tables_;
};

}  // namespace deepinfer::model::v41
