#include "config/engram_primes.h"

#include <numeric>

namespace deepinfer {
namespace {

bool IsPrime(int64_t n) {
  if (n < 4) return n >= 2;
  if (n % 2 == 0) return false;
  for (int64_t d = 3; d * d <= n; d += 2) {
    if (n % d == 0) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<int64_t>> EngramPrimes(int64_t count, int64_t start) {
  if (count < 0 || count > (int64_t{1} << 16) || start < 0 || start > (int64_t{1} << 31)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} Engram primes from {} were asked for; allowed are at most 65536 from 0 to "
                     "2^31",
                     count, start);
  }
  std::vector<int64_t> primes;
  for (int64_t n = start; static_cast<int64_t>(primes.size()) < count; ++n) {
    if (IsPrime(n)) primes.push_back(n);
  }
  return primes;
}

Result<std::vector<int64_t>> EngramTableRows(int64_t tables, int64_t columns, int64_t start) {
  DI_ASSIGN_OR_RETURN(const std::vector<int64_t> primes, EngramPrimes(tables * columns, start));
  std::vector<int64_t> rows;
  for (int64_t table = 0; table < tables; ++table) {
    const auto first = primes.begin() + table * columns;
    rows.push_back(std::accumulate(first, first + columns, int64_t{0}));
  }
  return rows;
}

}  // namespace deepinfer
