// Products; contract in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void Gemm(ThreadPool& pool, const GemmItem* items, int64_t count);

// One product on the calling thread, with the same bits. Uses the thread's scratch slots 0 to 3.
void GemmOnCaller(const GemmItem& item);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
