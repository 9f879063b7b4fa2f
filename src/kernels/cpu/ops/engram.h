// Engram; contracts in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void EngramGather(ThreadPool& pool, const EngramGatherArgs& args);
void EngramMix(ThreadPool& pool, const EngramMixArgs& args);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
