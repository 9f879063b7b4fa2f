// SIMD kernels for the CPU: one source per kernel, compiled once per target. A target is an
// instruction set; the same target gives the same bits on every machine that has it.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/cpu/ceiling.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu {

struct Target {
  const char* name = "";
  // What this processor and its operating system can run.
  bool supported = false;
  const KernelTable* table = nullptr;
  const CeilingKernels* ceiling = nullptr;
};

// Every target of this build, best last.
std::span<const Target> Targets();

// The table of the target called `name`; "auto" is the best one supported. Errors name the value
// and the targets there are, and say so when this processor lacks the instructions.
Result<const KernelTable*> SelectTarget(std::string_view name);

}  // namespace deepinfer::kernels::cpu
