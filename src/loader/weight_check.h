// Looks for NaN, infinity and scales out of range in stored weights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/progress.h"
#include "base/result.h"
#include "loader/tensor_contract.h"
#include "tensor/tensor_view.h"

namespace deepinfer {

enum class WeightCheck {
  kAuto,  // everything up to 1 GiB in all; above, all but routed experts' codes and Engram tables
  kAll,
  kNone,
};

// Index of the first element that is not a finite number: NaN or infinity in BF16 and F32, a NaN
// code in F8_E4M3 (0x7f, 0xff) and F8_E8M0 (255). Integer types have none. Reads every byte.
std::optional<int64_t> FirstNonFinite(const TensorView& tensor);

// No weight may be NaN or infinite and no matrix may have a scale outside the range of
// tensor/weight_scale.h. The error names the tensor, its file, the element's index, its value and,
// for a scale, the range. Tensors must have data.
Status CheckWeightValues(std::span<const StoredTensor> tensors, WeightCheck mode,
                         const ProgressFn& progress = {});

}  // namespace deepinfer
