#include "bench/ceilings.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/huge_pages.h"
#include "base/numa_memory.h"
#include "base/page_cache.h"
#include "kernels/cpu/cpu.h"

namespace deepinfer::bench {
namespace {

using kernels::cpu::CeilingKernels;
using kernels::cpu::kReadStep;
using kernels::cpu::MultiplyUnit;

// Rounds of a multiply loop in one call: some microseconds.
constexpr int64_t kRounds = 1000;

// Where the loops' results go, so that no compiler drops them.
std::atomic<uint32_t> g_result{0};

class CeilingBench {
 public:
  CeilingBench(const CeilingBenchSettings& settings, const RecordSink& sink,
               const ProgressFn& progress, size_t targets)
      : settings_(settings),
        sink_(sink),
        progress_(progress),
        total_(targets * static_cast<size_t>(settings.threads)) {}

  Status Run(std::span<const kernels::KernelTable* const> tables) {
    const size_t bytes = settings_.buffer_bytes > 0 ? settings_.buffer_bytes : DefaultBufferBytes();
    ThreadPool pool(settings_.threads, settings_.placement);
    DI_RETURN_IF_ERROR(pool.status());
    for (const kernels::KernelTable* table : tables) {
      const CeilingKernels& kernels = kernels::cpu::CeilingOf(*table);
      if (!meter_.buffer().empty()) {
        meter_.UseKernels(kernels);
      } else {
        DI_ASSIGN_OR_RETURN(meter_, CeilingMeter::Create(kernels, pool, bytes));
        DI_RETURN_IF_ERROR(Map());
      }
      DI_RETURN_IF_ERROR(RunTarget(kernels, pool));
    }
    return {};
  }

 private:
  Status Map() {
    if (settings_.file.empty()) {
      DI_ASSIGN_OR_RETURN(file_, MapTemporaryFile(meter_.buffer()));
      return {};
    }
    DI_ASSIGN_OR_RETURN(file_, MappedFile::Open(settings_.file));
    if (file_.bytes().size() >= static_cast<size_t>(kReadStep)) return {};
    return MakeError(ErrorCode::kInvalidArgument, "{} has {} bytes; at least {} are read",
                     settings_.file, file_.bytes().size(), kReadStep);
  }

  Status RunTarget(const CeilingKernels& kernels, ThreadPool& largest) {
    for (int threads = 1; threads <= settings_.threads; ++threads) {
      if (progress_) progress_("measuring ceilings", done_++, total_);
      if (threads == settings_.threads) {
        DI_RETURN_IF_ERROR(RunThreads(kernels, largest));
        continue;
      }
      ThreadPool pool(threads);
      DI_RETURN_IF_ERROR(pool.status());
      DI_RETURN_IF_ERROR(RunThreads(kernels, pool));
    }
    if (progress_ && done_ == total_) progress_("measuring ceilings", total_, total_);
    return {};
  }

  Status RunThreads(const CeilingKernels& kernels, ThreadPool& pool) {
    const auto params = [&](std::string name, std::string value) {
      return std::vector<Param>{{"target", std::string(kernels.name)},
                                {"threads", int64_t{pool.size()}},
                                {std::move(name), std::move(value)}};
    };
    for (const bool mapped : {false, true}) {
      const std::span<const std::byte> bytes = mapped ? file_.bytes() : meter_.buffer();
      Record record{.name = "ceiling.read",
                    .params = params("source", mapped ? "mapped_file" : "memory"),
                    .unit = "GB/s"};
      record.params.push_back({"bytes", static_cast<int64_t>(bytes.size())});
      SetRate(meter_.Read(pool, bytes, settings_.timing), static_cast<double>(bytes.size()), 1e9,
              std::nullopt, record);
      DI_RETURN_IF_ERROR(sink_(record));
    }
    for (int u = 0; u < kernels.unit_count; ++u) {
      const MultiplyUnit& unit = kernels.units[u];
      Record record{
          .name = "ceiling.multiply", .params = params("unit", unit.name), .unit = "GFLOP/s"};
      SetRate(meter_.Multiply(pool, unit, settings_.timing), unit.operations * pool.size(), 1e9,
              std::nullopt, record);
      DI_RETURN_IF_ERROR(sink_(record));
    }
    return {};
  }

  const CeilingBenchSettings& settings_;
  const RecordSink& sink_;
  const ProgressFn& progress_;
  CeilingMeter meter_;
  MappedFile file_;
  size_t done_ = 0;
  size_t total_ = 0;
};

}  // namespace

size_t CacheBytes() {
  long most = 0;
  for (const int name : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE}) {
    most = std::max(most, ::sysconf(name));
  }
  return static_cast<size_t>(most);
}

size_t DefaultBufferBytes() {
  const auto pages = static_cast<size_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const size_t quarter = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) / 4;
  return std::min(size_t{1} << 30, std::max(quarter, size_t{1} << 24));
}

Result<CeilingMeter> CeilingMeter::Create(const CeilingKernels& kernels, ThreadPool& pool,
                                          size_t bytes) {
  // A huge page: the ceiling is not to wait for address translation.
  constexpr size_t kAlignment = size_t{2} << 20;
  CeilingMeter meter;
  meter.kernels_ = &kernels;
  meter.bytes_ = std::max(bytes / kReadStep, static_cast<size_t>(pool.size())) * kReadStep;
  const size_t reserved = (meter.bytes_ + kAlignment - 1) / kAlignment * kAlignment;
  meter.buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, reserved)));
  if (meter.buffer_ == nullptr) {
    return MakeError(ErrorCode::kResourceExhausted, "no memory for a buffer of {} bytes", bytes);
  }
  AdviseHugePages(meter.buffer_.get(), reserved);
  static_cast<void>(InterleaveOverNodes(meter.buffer_.get(), reserved));
  std::byte* data = meter.buffer_.get();
  pool.ParallelFor(static_cast<int64_t>(meter.bytes_) / kReadStep, 1,
                   [data](int64_t begin, int64_t end, int) {
                     std::fill(data + begin * kReadStep, data + end * kReadStep, std::byte{1});
                   });
  return meter;
}

Timing CeilingMeter::Read(ThreadPool& pool, std::span<const std::byte> bytes,
                          const TimingSettings& settings) const {
  const int64_t steps = static_cast<int64_t>(bytes.size()) / kReadStep;
  return Repeat(settings, [&] {
    pool.ParallelFor(steps, 1, [&](int64_t begin, int64_t end, int) {
      const uint32_t seen =
          kernels_->read(bytes.data() + begin * kReadStep, (end - begin) * kReadStep);
      g_result.fetch_or(seen, std::memory_order_relaxed);
    });
  });
}

Timing CeilingMeter::Multiply(ThreadPool& pool, const MultiplyUnit& unit,
                              const TimingSettings& settings) const {
  Timing timing = Repeat(settings, [&] {
    pool.ParallelFor(pool.size(), 1, [&](int64_t begin, int64_t end, int) {
      // A thread that does two shares takes twice as long, as it should.
      for (int64_t share = begin; share < end; ++share) {
        g_result.fetch_or(static_cast<uint32_t>(unit.run(kRounds)), std::memory_order_relaxed);
      }
    });
  });
  for (double* seconds : {&timing.median, &timing.min, &timing.max}) *seconds /= kRounds;
  return timing;
}

Ceilings CeilingMeter::Measure(ThreadPool& pool, const TimingSettings& settings) const {
  Ceilings ceilings;
  ceilings.read_bytes = static_cast<double>(bytes_) / Read(pool, buffer(), settings).min;
  for (int u = 0; u < kernels_->unit_count; ++u) {
    const MultiplyUnit& unit = kernels_->units[u];
    const double rate = unit.operations * pool.size() / Multiply(pool, unit, settings).min;
    if (u == 0) ceilings.f32_operations = rate;
    ceilings.operations = std::max(ceilings.operations, rate);
  }
  return ceilings;
}

Status RunCeilingBench(const kernels::KernelTable* table, const CeilingBenchSettings& settings,
                       const RecordSink& sink, const ProgressFn& progress) {
  std::vector<const kernels::KernelTable*> tables;
  for (const kernels::cpu::Target& target : kernels::cpu::Targets()) {
    if (table == nullptr && target.supported) tables.push_back(target.table);
  }
  if (table != nullptr) tables.push_back(table);
  return CeilingBench(settings, sink, progress, tables.size()).Run(tables);
}

}  // namespace deepinfer::bench
