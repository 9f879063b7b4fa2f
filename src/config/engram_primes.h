// The moduli of Engram's hashes (spec model-v41 section 2.4).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace deepinfer {

// The first `count` primes >= start, ascending. Tables take them in turn: a table's share is
// (max n-gram - 1) * heads of them, by n-gram size and then head, and it has as many rows as its
// primes sum to. kInvalidArgument unless 0 <= count <= 2^16 and 0 <= start <= 2^31.
Result<std::vector<int64_t>> EngramPrimes(int64_t count, int64_t start);

// Rows of each of `tables` Engram tables whose hashes have `columns` moduli each.
Result<std::vector<int64_t>> EngramTableRows(int64_t tables, int64_t columns, int64_t start);

}  // namespace deepinfer
