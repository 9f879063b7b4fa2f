// RMSNorm and rotary embedding; contracts in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void RmsNorm(ThreadPool& pool, const RowsView& x, const bf16* weight, float eps, bf16* y);
void Rope(ThreadPool& pool, bf16* x, int64_t rows, int64_t heads, int64_t dim, int64_t rope_dim,
          const float* cos, const float* sin, bool inverse);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
