// Which tensors a checkpoint of a given configuration must hold (spec model-v41 section 3).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/model_config.h"
#include "tensor/tensor_view.h"

namespace deepinfer {

// One tensor of a checkpoint and the file it stands in. `view` is null-data when only the names
// and shapes matter.
struct StoredTensor {
  std::string name;
  TensorView view;
  std::string shard;  // file name inside the checkpoint folder
};

struct ExpectedTensor {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;
  bool optional = false;  // may be absent; when present it must fit
};

// Every tensor of the text model and its draft stages, in the order in which the model runs:
// embed, layers, norm, head, mtp. A quantised `x` appears as `x.weight` and then `x.scale`.
// Vision tensors are not listed.
std::vector<ExpectedTensor> ExpectedTensors(const ModelConfig& config);

// True for tensors that may be present and that this engine does not read: those of the vision
// tower (only when the configuration has one) and the draft stages' copies of embed and head.
bool IsIgnoredTensor(const ModelConfig& config, std::string_view name);

// True for `layers.N.engram.embed.*`: tables too large for memory, read row by row.
bool IsEngramTable(std::string_view name);
// True for `*.ffn.experts.*`.
bool IsRoutedExpert(std::string_view name);

struct ContractSummary {
  int64_t checked = 0;
  int64_t ignored = 0;
};

// Compares names, dtypes and shapes. Missing, surplus and unfitting tensors are all listed in one
// error message, of which at most 50 lines are shown. `tensors` in any order, names unique.
Result<ContractSummary> CheckTensorContract(const ModelConfig& config,
                                            std::span<const StoredTensor> tensors);

}  // namespace deepinfer
