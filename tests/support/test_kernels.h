// The kernel table under test: reference, or the CPU target that DEEPINFER_CPU_TARGET names. Tests
// of kernels are registered once for each (deepinfer_test's CPU_TARGETS).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"

namespace deepinfer::kernels {

inline const KernelTable& Kernels() {
  static const KernelTable* const table = [] {
    const char* name = std::getenv("DEEPINFER_CPU_TARGET");
    if (name == nullptr || std::string(name) == "reference") return &reference::Table();
    const auto selected = cpu::SelectTarget(name);
    if (!selected.has_value()) {
      // The exit status that the test driver counts as skipped.
      std::fprintf(stderr, "%s\n", selected.error().message.c_str());
      std::exit(77);
    }
    return *selected;
  }();
  return *table;
}

// The same choice as a name for Runtime::Load.
inline std::string TestTarget() { return Kernels().name; }

// Sums on 16 fp32 lanes in the order docs/kernels.md gives; bf16 targets have their own.
inline bool HasReferenceSumOrder() {
  return std::string(Kernels().name).find("bf16") == std::string::npos;
}

}  // namespace deepinfer::kernels
