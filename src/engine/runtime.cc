#include "engine/runtime.h"

#include <malloc.h>

#include "base/topology.h"
#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"
#include "tokenizer/engram_token_map.h"

namespace deepinfer {
namespace {

WeightCheck ToWeightCheck(CheckWeights check) {
  switch (check) {
    case CheckWeights::kAuto:
      return WeightCheck::kAuto;
    case CheckWeights::kAll:
      return WeightCheck::kAll;
    case CheckWeights::kNone:
      return WeightCheck::kNone;
  }
  return WeightCheck::kAuto;
}

Result<const kernels::KernelTable*> KernelsOf(const std::string& cpu_target) {
  if (cpu_target == "reference") return &kernels::reference::Table();
  return kernels::cpu::SelectTarget(cpu_target);
}

uint64_t HeapBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<uint64_t>(info.uordblks) + info.hblkhd;
}

// Heap growth since `before`; 0 where the allocator does not count.
uint64_t HeapGrowth(uint64_t before) {
  const uint64_t now = HeapBytes();
  return now > before ? now - before : 0;
}

}  // namespace

RuntimeOptions RuntimeOptionsOf(const Options& options) {
  return {.check_weights = options.check_weights,
          .cpu_target = options.cpu_target,
          .weights = options.weights};
}

Result<std::shared_ptr<const Runtime>> Runtime::Load(const std::filesystem::path& folder,
                                                     const RuntimeOptions& options,
                                                     const ProgressFn& progress) {
  DI_ASSIGN_OR_RETURN(const kernels::KernelTable* kernel_table, KernelsOf(options.cpu_target));
  DI_ASSIGN_OR_RETURN(
      auto checkpoint,
      Checkpoint::Open(folder,
                       {.weight_check = ToWeightCheck(options.check_weights),
                        .weights_memory = options.weights == Weights::kLoad ? WeightsMemory::kLoad
                                                                            : WeightsMemory::kMap},
                       progress));
  const uint64_t before_tokenizer = HeapBytes();
  DI_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::FromFile(folder / "tokenizer.json"));
  const ModelConfig& config = checkpoint->config();
  std::vector<int32_t> engram_map;
  if (!config.engram_layers.empty()) {
    DI_ASSIGN_OR_RETURN(engram_map, BuildEngramTokenMap(tokenizer, config.vocab_size,
                                                        config.engram_compressed_vocab_size));
  } else if (tokenizer.vocab_size() > config.vocab_size) {
    return MakeError(
        ErrorCode::kDataLoss, "{}: the tokenizer has ids up to {}, the model's vocab_size is {}",
        (folder / "tokenizer.json").string(), tokenizer.vocab_size() - 1, config.vocab_size);
  }
  const uint64_t tokenizer_bytes = HeapGrowth(before_tokenizer);
  const uint64_t before_model = HeapBytes();

  std::shared_ptr<Runtime> runtime(new Runtime(std::move(checkpoint), std::move(tokenizer)));
  DI_ASSIGN_OR_RETURN(runtime->model_,
                      model::v41::Model::Create(runtime->config(), *runtime->checkpoint_,
                                                std::move(engram_map), *kernel_table));
  runtime->cpu_target_ = kernel_table->name;
  runtime->memory_ = {{options.weights == Weights::kLoad ? "weights, loaded" : "weights, mapped",
                       runtime->checkpoint_->total_bytes()},
                      {"tokenizer and Engram token map", tokenizer_bytes},
                      {"model tables", HeapGrowth(before_model)}};
  return std::shared_ptr<const Runtime>(std::move(runtime));
}

int ThreadCount(int64_t option) {
  if (option > 0) return static_cast<int>(option);
  return DefaultThreads();
}

ThreadPoolOptions WorkerPlacement(const Options& options) {
  if (options.cpu_pinning == CpuPinning::kOff) return {};
  return {.worker_cpus = WorkerCpus(ProcessTopology(), ThreadCount(options.threads))};
}

}  // namespace deepinfer
