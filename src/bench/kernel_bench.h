// Times every kernel of a table at the dimensions of a configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "bench/ceilings.h"
#include "bench/record.h"
#include "bench/timing.h"
#include "config/model_config.h"
#include "kernels/kernel_table.h"

namespace deepinfer::bench {

struct Dimensions {
  std::string name;  // "release"
  ModelConfig config;
};

struct KernelBenchSettings {
  TimingSettings timing = {};
  std::vector<Dimensions> dimensions = {};
  std::vector<int64_t> rows;  // of products; the other kernels run at the least and the greatest
  std::vector<int64_t> contexts;          // tokens before the rows, for kernels that look back
  std::vector<std::string> kernels = {};  // only these entries; empty: all
  // Operands that stand for weights take at least a quarter of this in all.
  size_t buffer_bytes = 0;
};

// One kernel on operands of its own.
struct KernelCase {
  std::vector<Param> params;
  // Multiplications and additions, for kernels that are made of them; 0: a kernel that moves data.
  double operations = 0;
  bool fp32 = false;  // operands that only the fp32 unit multiplies exactly
  double bytes = 0;   // read and written
  // Whether the bytes come from memory, so that the read bandwidth bounds the kernel.
  bool from_memory = false;
  std::function<void()> run;
};

// A case that is built when its turn comes, since the operands of all would not fit the memory.
struct KernelJob {
  std::string kernel;
  std::function<KernelCase()> make;
};

struct KernelJobArgs {
  const kernels::KernelTable& table;
  ThreadPool& pool;
  const KernelBenchSettings& settings;
  const Dimensions& dimensions;
};

// All return jobs of the given dimensions; the arguments must outlive them.
std::vector<KernelJob> GemmJobs(const KernelJobArgs& args);
std::vector<KernelJob> RowJobs(const KernelJobArgs& args);
std::vector<KernelJob> ContextJobs(const KernelJobArgs& args);

// Names of the table's entries that the jobs cover.
std::vector<std::string> BenchedKernels();

// Records "kernel.NAME" with time and GB/s or GFLOP/s, whichever ceiling bounds the kernel; the
// ceilings are measured at the start and again every few seconds.
Status RunKernelBench(const kernels::KernelTable& table, ThreadPool& pool,
                      const KernelBenchSettings& settings, const RecordSink& sink,
                      const ProgressFn& progress);

}  // namespace deepinfer::bench
