// Mixture of experts; contracts in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void Gate(ThreadPool& pool, const GateArgs& args);
void SwiGluQ8(ThreadPool& pool, const SwiGluArgs& args);
void Combine(ThreadPool& pool, const CombineArgs& args);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
