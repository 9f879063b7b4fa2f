// What a target's instructions can do at best: loops that only load or only multiply. Benchmarks
// hold the kernels against them; the model never calls them.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu {

// What `read` takes at a time.
inline constexpr int64_t kReadStep = 512;

// A loop of one multiply-add instruction, as many chains at once as it takes to hide its latency.
struct MultiplyUnit {
  const char* name = "";  // "fp32_fma", "bf16_dot"
  double operations = 0;  // multiplications and additions of one round
  float (*run)(int64_t rounds) = nullptr;
};

struct CeilingKernels {
  const char* name = "";  // the target
  // Loads every byte of [data, data + bytes) into registers, bytes a multiple of kReadStep. The
  // result depends on all of them.
  uint32_t (*read)(const void* data, int64_t bytes) = nullptr;
  const MultiplyUnit* units = nullptr;  // the first is fp32
  int unit_count = 0;
};

// Of the target that `table` was compiled for. The reference, which has none, is held against the
// best target of this processor.
const CeilingKernels& CeilingOf(const KernelTable& table);

}  // namespace deepinfer::kernels::cpu
