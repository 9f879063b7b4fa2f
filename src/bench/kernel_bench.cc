#include "bench/kernel_bench.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace deepinfer::bench {
namespace {

// Seconds after which the ceilings are measured anew: a shared machine's change with its load.
constexpr double kCeilingLife = 5;

std::vector<KernelJob> AllJobs(const KernelJobArgs& args) {
  std::vector<KernelJob> all = GemmJobs(args);
  for (auto make : {RowJobs, ContextJobs}) {
    std::vector<KernelJob> jobs = make(args);
    std::move(jobs.begin(), jobs.end(), std::back_inserter(all));
  }
  return all;
}

Record RecordOf(const KernelCase& kernel, const Timing& timing, const Ceilings& ceilings) {
  Record record;
  const double memory_seconds = kernel.from_memory ? kernel.bytes / ceilings.read_bytes : 0;
  const double peak = kernel.fp32 ? ceilings.f32_operations : ceilings.operations;
  const double multiply_seconds = kernel.operations / peak;
  if (kernel.operations > 0 && multiply_seconds >= memory_seconds) {
    record.unit = "GFLOP/s";
    SetRate(timing, kernel.operations, 1e9, peak / 1e9, record);
  } else {
    record.unit = "GB/s";
    SetRate(timing, kernel.bytes, 1e9,
            kernel.from_memory ? std::optional(ceilings.read_bytes / 1e9) : std::nullopt, record);
  }
  return record;
}

}  // namespace

std::vector<std::string> BenchedKernels() {
  ThreadPool pool(1);
  const KernelBenchSettings settings{.rows = {1}, .contexts = {1}};
  const Dimensions dimensions;
  const kernels::KernelTable table{};
  std::vector<std::string> names;
  for (const KernelJob& job : AllJobs({table, pool, settings, dimensions})) {
    if (std::ranges::find(names, job.kernel) == names.end()) names.push_back(job.kernel);
  }
  return names;
}

Status RunKernelBench(const kernels::KernelTable& table, ThreadPool& pool,
                      const KernelBenchSettings& settings, const RecordSink& sink,
                      const ProgressFn& progress) {
  DI_ASSIGN_OR_RETURN(const CeilingMeter meter, CeilingMeter::Create(kernels::cpu::CeilingOf(table),
                                                                     pool, settings.buffer_bytes));
  Ceilings ceilings;
  auto measured_at = std::chrono::steady_clock::time_point::min();
  std::vector<std::pair<const Dimensions*, KernelJob>> jobs;
  for (const Dimensions& dimensions : settings.dimensions) {
    for (KernelJob& job : AllJobs({table, pool, settings, dimensions})) {
      if (settings.kernels.empty() ||
          std::ranges::find(settings.kernels, job.kernel) != settings.kernels.end()) {
        jobs.emplace_back(&dimensions, std::move(job));
      }
    }
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto& [dimensions, job] = jobs[i];
    if (progress) progress("measuring " + job.kernel, i, jobs.size());
    const KernelCase kernel = job.make();
    if (i == 0 || SecondsSince(measured_at) > kCeilingLife) {
      ceilings = meter.Measure(pool, settings.timing);
      measured_at = std::chrono::steady_clock::now();
    }
    Record record = RecordOf(kernel, Repeat(settings.timing, kernel.run), ceilings);
    record.name = "kernel." + job.kernel;
    record.params = {{"dims", dimensions->name}};
    record.params.insert(record.params.end(), kernel.params.begin(), kernel.params.end());
    record.params.push_back({"threads", int64_t{pool.size()}});
    record.params.push_back({"target", std::string(table.name)});
    DI_RETURN_IF_ERROR(sink(record));
  }
  if (progress) progress("measuring kernels", jobs.size(), jobs.size());
  return {};
}

}  // namespace deepinfer::bench
