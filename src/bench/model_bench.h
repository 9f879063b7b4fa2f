// End-to-end measurements over a checkpoint: loading, prefill, decode.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "bench/ceilings.h"
#include "bench/kernel_profile.h"
#include "bench/record.h"
#include "bench/timing.h"
#include "engine/runtime.h"
#include "exec/prefill.h"

namespace deepinfer::bench {

struct ModelBenchSettings {
  TimingSettings timing = {};
  int threads = 1;
  ThreadPoolOptions placement = {};
  // For the read ceiling.
  size_t buffer_bytes = 0;
  // Adds a record for every kernel, "PREFILL_OR_DECODE.profile", and one for what lies outside.
  bool profile = false;
};

struct PrefillBenchSettings {
  std::vector<int64_t> prompt_tokens;
  std::vector<PrefillMode> modes;
  int64_t keep_tokens = 140;
  int64_t chunk_tokens = 2048;  // of a forward pass
};

struct DecodeBenchSettings {
  std::vector<int64_t> contexts;  // tokens before the first measured one, of every sequence
  std::vector<int64_t> batches;   // sequences decoded together
  int64_t steps = 16;             // tokens a sequence in one repetition
  PrefillPolicy prefill;          // of a real context
  int64_t chunk_tokens = 2048;    // of a forward pass while it is read
  // Random cache records instead of a prefill (model/v41/synthetic_context.h).
  bool synthetic_context = false;
};

// A loaded checkpoint with what measuring it takes. Prompts are random token ids. Not thread-safe.
class ModelBench {
 public:
  static Result<std::unique_ptr<ModelBench>> Load(const std::filesystem::path& folder,
                                                  const RuntimeOptions& options,
                                                  const ModelBenchSettings& settings,
                                                  const RecordSink& sink,
                                                  const ProgressFn& progress);

  // For every prompt length and mode: "prefill.speed" (prompt tokens/s), "prefill.gemm" (operations
  // of the products over their own time, against the multiply ceiling) and "prefill.end_to_end"
  // (the same operations over the whole time). Errors before anything runs: a prompt longer than
  // the context, a keep length out of range.
  Status Prefill(const PrefillBenchSettings& settings);

  // For every batch size and context: "decode.speed" (tokens/s of all sequences, greedy draw
  // included) and "decode.weights" (bytes of active weights a second). The ceiling of both is the
  // time that reading those weights takes. Active weights of one sequence: ActiveBytes::token of
  // loader/checkpoint_report.h; of more, dense weights once, routed experts as often as steps
  // before the measured ones read them. Errors: a context that has no room for the tokens.
  Status Decode(const DecodeBenchSettings& settings);

 private:
  struct DecodeCase;

  ModelBench(const ModelBenchSettings& settings, const RecordSink& sink, const ProgressFn& progress)
      : settings_(settings), sink_(sink), progress_(progress) {}

  Result<std::unique_ptr<model::v41::SequenceState>> RunPrefill(const model::v41::Model& model,
                                                                std::span<const int32_t> prompt,
                                                                const PrefillPolicy& policy,
                                                                int64_t chunk_tokens);
  Status PrefillCase(int64_t tokens, const PrefillPolicy& policy, int64_t chunk_tokens);
  Status CheckDecode(const DecodeBenchSettings& settings) const;
  Status RunDecodeCase(const DecodeBenchSettings& settings, int64_t batch, int64_t context);
  Result<DecodeCase> MakeDecodeCase(const DecodeBenchSettings& settings, int64_t batch,
                                    int64_t context);
  // One token for every sequence.
  Status Step(const model::v41::Model& model, DecodeCase& decode);
  // Records of the profile; `units` is by what its times are divided.
  Status Profile(const std::string& name, const std::vector<Param>& params,
                 const KernelProfile& profile, double total_seconds, double units);
  std::vector<int32_t> RandomTokens(int64_t count, uint64_t seed) const;
  std::vector<Param> Params(std::vector<Param> params) const;
  void Progress(std::string_view what, uint64_t done, uint64_t total) const {
    if (progress_) progress_(what, done, total);
  }

  const ModelBenchSettings settings_;
  const RecordSink& sink_;
  const ProgressFn& progress_;
  std::shared_ptr<const Runtime> runtime_;
  const kernels::KernelTable* table_ = nullptr;
  std::unique_ptr<model::v41::Model> profiled_model_;  // the same weights through ProfiledTable()
  std::unique_ptr<model::v41::ForwardContext> context_;
  CeilingMeter meter_;
  std::vector<float> logits_;
};

struct LoadBenchSettings {
  TimingSettings timing = {};  // repeat alone counts
  int threads = 1;
  ThreadPoolOptions placement = {};
};

// Loads the checkpoint with its files out of the page cache ("cache=cold") and in it ("warm"), in
// turn: "load.time" and "load.first_token" (load and a first token after it), then
// "load.resident", what the process holds more than before: file-backed (weights that were touched)
// and anonymous bytes, the latter also as a share of the weights. A cold load whose files stayed
// cached says so in `cached_bytes`.
Status RunLoadBench(const std::filesystem::path& folder, const RuntimeOptions& options,
                    const LoadBenchSettings& settings, const RecordSink& sink,
                    const ProgressFn& progress);

}  // namespace deepinfer::bench
