// What the machine reaches at best with a number of threads: bytes read and multiply-adds.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "bench/record.h"
#include "bench/timing.h"
#include "kernels/cpu/ceiling.h"

namespace deepinfer::bench {

// In bytes and operations a second, of the fastest repetition: a ceiling is what was possible, not
// what was usual.
struct Ceilings {
  double read_bytes = 0;
  double operations = 0;      // of the target's fastest multiply unit
  double f32_operations = 0;  // of its fp32 unit
};

// A buffer too large for the caches, written once. Not thread-safe.
class CeilingMeter {
 public:
  // `bytes` is rounded down to what the loops take, at least one step a thread. Errors: memory.
  // The kernels must outlive it.
  static Result<CeilingMeter> Create(const kernels::cpu::CeilingKernels& kernels, ThreadPool& pool,
                                     size_t bytes);
  CeilingMeter() = default;

  // Measures with another target's loops from now on.
  void UseKernels(const kernels::cpu::CeilingKernels& kernels) { kernels_ = &kernels; }
  std::span<const std::byte> buffer() const { return {buffer_.get(), bytes_}; }
  // Seconds to read `bytes` once, shared over the pool's threads.
  Timing Read(ThreadPool& pool, std::span<const std::byte> bytes,
              const TimingSettings& settings) const;
  // Seconds of one round of the unit on each thread.
  Timing Multiply(ThreadPool& pool, const kernels::cpu::MultiplyUnit& unit,
                  const TimingSettings& settings) const;
  Ceilings Measure(ThreadPool& pool, const TimingSettings& settings) const;

 private:
  struct FreeBuffer {
    void operator()(std::byte* p) const { std::free(p); }
  };

  const kernels::cpu::CeilingKernels* kernels_ = nullptr;
  std::unique_ptr<std::byte, FreeBuffer> buffer_;
  size_t bytes_ = 0;
};

struct CeilingBenchSettings {
  TimingSettings timing = {};
  int threads = 1;                   // measured with 1 to this many
  ThreadPoolOptions placement = {};  // of the largest number
  size_t buffer_bytes = 0;           // 0: DefaultBufferBytes
  std::string file = {};             // what is mapped; empty: a temporary file like the buffer
};

// Of the largest cache that the system tells of; 0: it tells of none.
size_t CacheBytes();

// Larger than any cache by far: 1 GiB, or a quarter of the memory where that is less.
size_t DefaultBufferBytes();

// Records "ceiling.read" (source=memory, source=mapped_file) and "ceiling.multiply" for every
// target that this processor supports, or only for `table`'s when it is not null.
Status RunCeilingBench(const kernels::KernelTable* table, const CeilingBenchSettings& settings,
                       const RecordSink& sink, const ProgressFn& progress);

}  // namespace deepinfer::bench
