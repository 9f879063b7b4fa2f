// Cache records back as bf16 values, for the probe. Formats: kernels/kernel_table.h.
#pragma once

#include <cstdint>

#include "base/numeric.h"

namespace deepinfer::model::v41 {

// out [count, dim]
void UnpackWindow(const uint8_t* const* records, int64_t count, int64_t dim, bf16* out);
void UnpackKvEntries(const uint8_t* const* records, int64_t count, int64_t dim, bf16* out);
void UnpackIndexKeys(const uint8_t* const* records, int64_t count, int64_t dim, bf16* out);

}  // namespace deepinfer::model::v41
