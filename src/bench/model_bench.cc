#include "bench/model_bench.h"

#include <algorithm>

#include "base/random.h"
#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"
#include "tokenizer/engram_token_map.h"

namespace deepinfer::bench {

Result<std::unique_ptr<ModelBench>> ModelBench::Load(const std::filesystem::path& folder,
                                                     const RuntimeOptions& options,
                                                     const ModelBenchSettings& settings,
                                                     const RecordSink& sink,
                                                     const ProgressFn& progress) {
  std::unique_ptr<ModelBench> bench(new ModelBench(settings, sink, progress));
  DI_ASSIGN_OR_RETURN(bench->runtime_, Runtime::Load(folder, options, progress));
  const Runtime& runtime = *bench->runtime_;
  if (runtime.cpu_target() == kernels::reference::Table().name) {
    bench->table_ = &kernels::reference::Table();
  } else {
    DI_ASSIGN_OR_RETURN(bench->table_, kernels::cpu::SelectTarget(runtime.cpu_target()));
  }
  std::vector<int32_t> engram_map;
  if (!runtime.config().engram_layers.empty()) {
    DI_ASSIGN_OR_RETURN(engram_map,
                        BuildEngramTokenMap(runtime.tokenizer(), runtime.config().vocab_size,
                                            runtime.config().engram_compressed_vocab_size));
  }
  DI_ASSIGN_OR_RETURN(bench->profiled_model_,
                      model::v41::Model::Create(runtime.config(), runtime.checkpoint(),
                                                std::move(engram_map), ProfiledTable()));
  bench->context_ =
      std::make_unique<model::v41::ForwardContext>(settings.threads, settings.placement);
  DI_RETURN_IF_ERROR(bench->context_->pool().status());
  DI_ASSIGN_OR_RETURN(bench->meter_,
                      CeilingMeter::Create(kernels::cpu::CeilingOf(*bench->table_),
                                           bench->context_->pool(), settings.buffer_bytes));
  return bench;
}

std::vector<int32_t> ModelBench::RandomTokens(int64_t count, uint64_t seed) const {
  const auto vocab = static_cast<uint64_t>(runtime_->config().vocab_size);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(RandomBits(seed, i) % vocab);
  }
  return tokens;
}

std::vector<Param> ModelBench::Params(std::vector<Param> params) const {
  params.push_back({"model", runtime_->checkpoint().dir().filename().string()});
  params.push_back({"threads", int64_t{context_->pool().size()}});
  params.push_back({"target", std::string(runtime_->cpu_target())});
  return params;
}

Result<std::unique_ptr<model::v41::SequenceState>> ModelBench::RunPrefill(
    const model::v41::Model& model, std::span<const int32_t> prompt, const PrefillPolicy& policy,
    int64_t chunk_tokens) {
  auto state = model.NewSequence();
  const int64_t decoder_start = DecoderStart(policy, std::ssize(prompt));
  for (size_t done = 0; done < prompt.size();) {
    const size_t size = std::min(prompt.size() - done, static_cast<size_t>(chunk_tokens));
    const model::v41::SequenceChunk chunk{.state = state.get(),
                                          .tokens = prompt.subspan(done, size),
                                          .decoder_start = decoder_start,
                                          .logits_rows = done + size == prompt.size() ? 1 : 0};
    DI_RETURN_IF_ERROR(model.Forward(*context_, {&chunk, 1}, logits_));
    done += size;
    // The caller reports the end of its work.
    if (done < prompt.size()) Progress("reading prompts", done, prompt.size());
  }
  return state;
}

Status ModelBench::Profile(const std::string& name, const std::vector<Param>& params,
                           const KernelProfile& profile, double total_seconds, double units) {
  const auto emit = [&](std::string_view kernel, int64_t calls, double seconds) {
    Record record{.name = name, .params = params, .unit = "ms"};
    record.params.insert(record.params.begin(), {{"kernel", std::string(kernel)},
                                                 {"calls", static_cast<double>(calls) / units}});
    record.value = record.min = record.max = 1e3 * seconds / units;
    record.seconds = seconds / units;
    record.share = seconds / total_seconds;
    return sink_(record);
  };
  for (const KernelCount& count : profile.counts()) {
    DI_RETURN_IF_ERROR(emit(count.name, count.calls, count.seconds));
  }
  return emit("outside_kernels", 0, total_seconds - profile.kernel_seconds());
}

}  // namespace deepinfer::bench
