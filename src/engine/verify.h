// Compares a forward with a dump of captured tensors, block by block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/v41/model.h"

namespace deepinfer {

// One tensor of the dump against ours.
struct TensorComparison {
  std::string name;  // "layers.2.attn_q"
  uint64_t elements = 0;
  uint64_t differing = 0;   // elements that are not equal
  double max_abs = 0;       // largest difference of finite elements
  double rms_relative = 0;  // RMS of the difference / RMS of the dump's tensor
  bool agrees = true;       // inside the tolerance of its kind
  std::string problem;      // why not
};

struct VerifyReport {
  std::vector<TensorComparison> tensors;  // in the order of the computation
  std::vector<std::string> unused;        // tensors of the dump that no block produced

  // The first that does not agree; null when all do.
  const TensorComparison* first_divergence() const;
};

struct VerifyDump {
  std::filesystem::path file;   // safetensors with tensors named as ForwardProbe names them
  std::vector<int32_t> tokens;  // the prompt it was captured on
};

// Finds the dump that `path` means. A file: its prompt is its tensor "tokens" (I32 or I64), or, for
// "capture_NAME_...safetensors", the tensor NAME of prompts.safetensors beside it. A folder: its
// only capture_*_idx32.safetensors file, or the one of `prompt` ("p33") when that is not empty.
Result<VerifyDump> FindVerifyDump(const std::filesystem::path& path, const std::string& prompt);

// Runs the dump's prompt whole, in exact mode. Teacher-forced: every block starts from the dump's
// own inputs where it holds them (x_in, pre_in, engram_in, topk_idxs, x_out, pre_out), so that
// differences do not pile up. With `free_running` nothing is replaced.
// Tolerances: goldens/README.md, "Per layer, teacher-forced", times ten for sums in another order.
Result<VerifyReport> Verify(const model::v41::Model& model, model::v41::ForwardContext& context,
                            const VerifyDump& dump, bool free_running);

}  // namespace deepinfer
