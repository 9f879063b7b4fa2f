// Compares a forward with a dump of captured tensors, block by block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/safetensors.h"
#include "model/v41/model.h"
#include "tensor/tensor_view.h"

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

// Compares what a forward or a draft shows with the tensors of a dump, and by default replaces the
// inputs of every block by the dump's (see Verify). The dump must outlive it.
class DumpComparer final : public model::v41::ForwardProbe {
 public:
  // `prompt_tokens`: length of the prompt the dump was captured on.
  DumpComparer(const SafetensorsFile& dump, int64_t prompt_tokens, bool free_running);

  void OnTensor(std::string_view name, const TensorView& value, std::byte* bytes) override;
  int64_t WindowSlots(int64_t window) override;
  // What was seen since the construction. Call once.
  VerifyReport TakeReport();

 private:
  std::map<std::string, const TensorView*, std::less<>> dump_;
  const int64_t prompt_tokens_;
  const bool free_running_;
  std::set<std::string> seen_;
  VerifyReport report_;
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
