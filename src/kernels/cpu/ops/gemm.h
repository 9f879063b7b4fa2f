// Products; contract in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void Gemm(ThreadPool& pool, const GemmItem* items, int64_t count);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
