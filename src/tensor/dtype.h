// Element types of stored tensors, by their safetensors names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace deepinfer {

enum class DType : uint8_t {
  kBF16,
  kF32,
  kF8E4M3,  // e4m3fn: no infinity, 0x7f and 0xff are NaN
  kF8E8M0,  // scale byte c means 2^(c-127); 255 is NaN
  kI8,      // packed FP4 experts: two e2m1 codes a byte, even element in the low nibble
  kU8,
  kI32,
  kI64,
};

constexpr size_t DTypeBytes(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kI64:
      return 8;
    default:
      return 1;
  }
}

// The name in a safetensors header ("BF16", "F8_E4M3", ...).
constexpr std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return "BF16";
    case DType::kF32:
      return "F32";
    case DType::kF8E4M3:
      return "F8_E4M3";
    case DType::kF8E8M0:
      return "F8_E8M0";
    case DType::kI8:
      return "I8";
    case DType::kU8:
      return "U8";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
  }
  return "?";
}

// Empty for a name this engine does not know.
constexpr std::optional<DType> ParseDType(std::string_view name) {
  for (DType dtype : {DType::kBF16, DType::kF32, DType::kF8E4M3, DType::kF8E8M0, DType::kI8,
                      DType::kU8, DType::kI32, DType::kI64}) {
    if (DTypeName(dtype) == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace deepinfer
