// Quantisers and packed cache records. Contracts: kernels/kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void QuantizeQ8(ThreadPool& pool, const RowsView& x, const Q8Rows& out);
void RoundQ4u(ThreadPool& pool, bf16* x, int64_t rows, int64_t cols);
void PackWindow(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out);
void PackKv(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out);
void PackIndexKey(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
