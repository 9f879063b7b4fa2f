#include "loader/weight_check.h"

#include <algorithm>
#include <cstring>

#include "base/numeric.h"
#include "tensor/weight_scale.h"

namespace deepinfer {
namespace {

constexpr size_t kCheckAllBytes = size_t{1} << 30;
// Long enough to keep the inner loop busy, short enough that a hit is found again cheaply and
// progress moves.
constexpr int64_t kBlockElements = 1 << 16;

// True when any of `count` elements is bad. No early exit, so that the loop vectorises; `data` may
// be unaligned.
template <typename Bits, typename IsBad>
bool AnyBad(const std::byte* data, int64_t count, IsBad is_bad) {
  Bits any = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    any |= static_cast<Bits>(is_bad(bits));
  }
  return any != 0;
}

template <typename Bits, typename IsBad>
std::optional<int64_t> FirstBad(const TensorView& tensor, IsBad is_bad) {
  const int64_t elements = tensor.elements();
  for (int64_t begin = 0; begin < elements; begin += kBlockElements) {
    const std::byte* block = tensor.data + begin * static_cast<int64_t>(sizeof(Bits));
    const int64_t count = std::min(kBlockElements, elements - begin);
    if (!AnyBad<Bits>(block, count, is_bad)) continue;
    for (int64_t i = 0; i < count; ++i) {
      if (AnyBad<Bits>(block + i * static_cast<int64_t>(sizeof(Bits)), 1, is_bad)) {
        return begin + i;
      }
    }
  }
  return std::nullopt;
}

// Scales of experts are a 17th of their bytes, and one out of range would go unnoticed: it is a
// number, but not to the kernels.
bool IsChecked(const StoredTensor& tensor, WeightCheck mode) {
  if (mode == WeightCheck::kAll) return true;
  if (IsEngramTable(tensor.name)) return false;
  return !IsRoutedExpert(tensor.name) || tensor.view.dtype == DType::kF8E8M0;
}

bool IsMatrixScale(const StoredTensor& tensor) {
  return tensor.view.dtype == DType::kF8E8M0 && !IsEngramTable(tensor.name);
}

std::string ShownElement(const TensorView& tensor, int64_t index) {
  const std::byte* at = tensor.data + index * static_cast<int64_t>(DTypeBytes(tensor.dtype));
  float value = 0;
  switch (tensor.dtype) {
    case DType::kBF16: {
      bf16 bits;
      std::memcpy(&bits, at, sizeof bits);
      value = ToFloat(bits);
      break;
    }
    case DType::kF32:
      std::memcpy(&value, at, sizeof value);
      break;
    default:
      return fmt::format("NaN (code {})", std::to_integer<int>(*at));
  }
  return value != value ? "NaN" : value > 0 ? "infinity" : "-infinity";
}

std::optional<int64_t> FirstBadScale(const TensorView& scales) {
  return FirstBad<uint8_t>(scales,
                           [](uint8_t b) { return b < kMinWeightScale || b > kMaxWeightScale; });
}

Status CheckTensor(const StoredTensor& tensor) {
  if (const std::optional<int64_t> bad = FirstNonFinite(tensor.view)) {
    return MakeError(ErrorCode::kDataLoss, "tensor {} (in {}) has {} at element {} of {}",
                     tensor.name, tensor.shard, ShownElement(tensor.view, *bad), *bad,
                     tensor.view.elements());
  }
  if (!IsMatrixScale(tensor)) return {};
  if (const std::optional<int64_t> bad = FirstBadScale(tensor.view)) {
    const int code = std::to_integer<int>(tensor.view.data[*bad]);
    return MakeError(ErrorCode::kUnsupported,
                     "tensor {} (in {}) has the scale 2^{} (code {}) at element {} of {}; scales "
                     "of matrices must be within 2^{} to 2^{}",
                     tensor.name, tensor.shard, code - 127, code, *bad, tensor.view.elements(),
                     kMinWeightScale - 127, kMaxWeightScale - 127);
  }
  return {};
}

}  // namespace

std::optional<int64_t> FirstNonFinite(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kBF16:
      return FirstBad<uint16_t>(tensor, [](uint16_t b) { return (b & 0x7f80u) == 0x7f80u; });
    case DType::kF32:
      return FirstBad<uint32_t>(tensor,
                                [](uint32_t b) { return (b & 0x7f800000u) == 0x7f800000u; });
    case DType::kF8E4M3:
      return FirstBad<uint8_t>(tensor, [](uint8_t b) { return (b & 0x7fu) == 0x7fu; });
    case DType::kF8E8M0:
      return FirstBad<uint8_t>(tensor, [](uint8_t b) { return b == 0xffu; });
    case DType::kI8:
    case DType::kU8:
    case DType::kI32:
    case DType::kI64:
      return std::nullopt;
  }
  return std::nullopt;
}

Status CheckWeightValues(std::span<const StoredTensor> tensors, WeightCheck mode,
                         const ProgressFn& progress) {
  if (mode == WeightCheck::kNone) return {};
  uint64_t total = 0;
  for (const StoredTensor& tensor : tensors) total += tensor.view.bytes();
  if (mode == WeightCheck::kAuto && total <= kCheckAllBytes) mode = WeightCheck::kAll;
  if (mode != WeightCheck::kAll) {
    total = 0;
    for (const StoredTensor& tensor : tensors) {
      if (IsChecked(tensor, mode)) total += tensor.view.bytes();
    }
  }
  uint64_t done = 0;
  for (const StoredTensor& tensor : tensors) {
    if (!IsChecked(tensor, mode)) continue;
    if (progress) progress("checking weights", done, total);
    DI_RETURN_IF_ERROR(CheckTensor(tensor));
    done += tensor.view.bytes();
  }
  if (progress) progress("checking weights", done, total);
  return {};
}

}  // namespace deepinfer
