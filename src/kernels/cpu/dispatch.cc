#include <string>

#include "kernels/cpu/cpu.h"

namespace deepinfer::kernels::cpu {

#if defined(__x86_64__)
namespace scalar {
const KernelTable& Table();
const CeilingKernels& Ceiling();
}  // namespace scalar
namespace avx2 {
const KernelTable& Table();
const CeilingKernels& Ceiling();
}  // namespace avx2
namespace avx512 {
const KernelTable& Table();
const CeilingKernels& Ceiling();
}  // namespace avx512
namespace avx512_bf16 {
const KernelTable& Table();
const CeilingKernels& Ceiling();
}  // namespace avx512_bf16
#elif defined(__aarch64__)
namespace neon {
const KernelTable& Table();
const CeilingKernels& Ceiling();
}  // namespace neon
#else
namespace scalar {
const KernelTable& Table();
const CeilingKernels& Ceiling();
}  // namespace scalar
#endif

namespace {

#if defined(__x86_64__)
bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool HasAvx512Bf16() {
  return HasAvx512() && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512bf16");
}
#endif

}  // namespace

std::span<const Target> Targets() {
#if defined(__x86_64__)
  static const Target targets[] = {
      {"scalar", true, &scalar::Table(), &scalar::Ceiling()},
      {"avx2", HasAvx2(), &avx2::Table(), &avx2::Ceiling()},
      {"avx512", HasAvx512(), &avx512::Table(), &avx512::Ceiling()},
      {"avx512_bf16", HasAvx512Bf16(), &avx512_bf16::Table(), &avx512_bf16::Ceiling()},
  };
#elif defined(__aarch64__)
  static const Target targets[] = {{"neon", true, &neon::Table(), &neon::Ceiling()}};
#else
  static const Target targets[] = {{"scalar", true, &scalar::Table(), &scalar::Ceiling()}};
#endif
  return targets;
}

const CeilingKernels& CeilingOf(const KernelTable& table) {
  for (const Target& target : Targets()) {
    if (target.table == &table) return *target.ceiling;
  }
  const CeilingKernels* best = nullptr;
  for (const Target& target : Targets()) {
    if (target.supported) best = target.ceiling;
  }
  return *best;
}

Result<const KernelTable*> SelectTarget(std::string_view name) {
  const KernelTable* best = nullptr;
  std::string names = "auto";
  for (const Target& target : Targets()) {
    if (target.supported) best = target.table;
    names += ", ";
    names += target.name;
    if (name != target.name) continue;
    if (target.supported) return target.table;
    return MakeError(ErrorCode::kUnsupported,
                     "cpu-target {}: this processor lacks the instructions of that target", name);
  }
  if (name == "auto") return best;
  return MakeError(ErrorCode::kInvalidArgument, "cpu-target \"{}\": must be reference, {}", name,
                   names);
}

}  // namespace deepinfer::kernels::cpu
