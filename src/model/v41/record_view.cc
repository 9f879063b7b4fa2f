#include "model/v41/record_view.h"

#include "kernels/kernel_table.h"

namespace deepinfer::model::v41 {
namespace {

uint8_t Nibble(const uint8_t* codes, int64_t i) { return codes[i / 2] >> (i % 2 * 4) & 15; }

}  // namespace

void UnpackWindow(const uint8_t* const* records, int64_t count, int64_t dim, bf16* out) {
  for (int64_t i = 0; i < count * dim; ++i) {
    const uint8_t* record = records[i / dim];
    const int64_t d = i % dim;
    out[i] = ToBf16(E4M3ToFloat(record[d]) * E8M0ToFloat(record[dim + d / kernels::kGroup]));
  }
}

void UnpackKvEntries(const uint8_t* const* records, int64_t count, int64_t dim, bf16* out) {
  for (int64_t i = 0; i < count * dim; ++i) {
    const uint8_t* record = records[i / dim];
    const int64_t d = i % dim;
    out[i] = ToBf16(E2M1ToFloat(Nibble(record, d)) *
                    E4M3ToFloat(record[dim / 2 + d / kernels::kKvGroup]));
  }
}

void UnpackIndexKeys(const uint8_t* const* records, int64_t count, int64_t dim, bf16* out) {
  for (int64_t i = 0; i < count * dim; ++i) {
    const uint8_t* record = records[i / dim];
    const int64_t d = i % dim;
    out[i] =
        ToBf16(E2M1ToFloat(Nibble(record, d)) * E8M0ToFloat(record[dim / 2 + d / kernels::kGroup]));
  }
}

}  // namespace deepinfer::model::v41
