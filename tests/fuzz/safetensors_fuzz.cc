// Whatever the bytes are: an error, or tensors whose ranges lie inside them and match their shapes.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "loader/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = deepinfer::ParseSafetensors(std::as_bytes(std::span(data, size)), "input");
  if (!parsed) return 0;
  uint64_t covered = 0;
  for (const deepinfer::SafetensorsEntry& entry : *parsed) {
    const deepinfer::TensorView view{entry.dtype, entry.shape, nullptr};
    if (entry.begin > entry.end || entry.end > size || view.bytes() != entry.end - entry.begin) {
      std::abort();
    }
    if (covered != 0 && entry.begin != covered) std::abort();
    covered = entry.end;
  }
  return 0;
}
