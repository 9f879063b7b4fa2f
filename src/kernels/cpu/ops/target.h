// The target this source is being compiled for. Every file of this folder is compiled once per
// target, with that target's compiler flags and DEEPINFER_TARGET set to its name, which is also the
// innermost namespace of all it defines.
//
// Code here must not define or instantiate anything outside that namespace (no standard library
// templates, no inline functions of shared headers that might not be inlined): the linker keeps one
// copy of such a function, possibly the one compiled for an instruction set the machine lacks.
// tests/lint/target_symbols.py checks the objects.
#pragma once

#ifndef DEEPINFER_TARGET
#error "compile kernels/cpu/ops through deepinfer_cpu_target() of CMake"
#endif

#define DEEPINFER_INLINE inline __attribute__((always_inline))
// Behind the parameters of a lambda.
#define DEEPINFER_INLINE_LAMBDA __attribute__((always_inline))

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

template <typename T>
DEEPINFER_INLINE T Min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
DEEPINFER_INLINE T Max(T a, T b) {
  return a < b ? b : a;
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
